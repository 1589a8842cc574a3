"""The built-in rules: what every session starts from, farther than all that users write.

They let ordinary work in the project go on without asking, keep credentials out of reach, and ask
for the rest.  ``docs/reference/preset.md`` is a copy of the table for people; a test keeps the two
equal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from yolofs.paths import is_below
from yolofs.rules.rule_states import RuleState
from yolofs.rules.sources import PRESET_SOURCE
from yolofs.rules.spelling import PathRule, Rule, RuleSet, Subject, parse_rule, spell, subject

SOURCE = PRESET_SOURCE
"""How it starts where these rules are written, for messages; what follows is a section's title."""

HISTORIES = "Histories"
"""The title of the rules for what programs keep of what was typed at them."""

EXEMPT = frozenset({b".git", b"dist-packages", b"node_modules", b"site-packages"})
"""Where names of files say nothing: branches may be called ``fix.key``, and published packages
bring certificates.
"""
_UP = "UP/"
_YOLOFS = "YOLOFS/"
_CONFIG = "~/.config/yolofs"


class PresetRule(NamedTuple):
    """One line of the preset."""

    key: str
    """As in ``[rules]``; ``UID`` at its end stands for the user's number.

    ``UP/NAME``: that name in each directory from the one above the project up to the home
    directory.  ``YOLOFS/NAME``: that name in each directory where yolofs and its Python are
    installed.
    """
    state: RuleState
    reason: str


class Section(NamedTuple):
    """Lines that belong together."""

    title: str
    reason: str
    rules: tuple[PresetRule, ...]


def installation() -> tuple[bytes, ...]:
    """Return the directories that this yolofs, its Python and the libraries it needs run from,
    links resolved.

    In a checkout parts of the package are links to directories beside it.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with os.scandir(package) as entries:
        linked = [entry.path for entry in entries if entry.is_symlink()]
    libraries = os.path.dirname(os.path.dirname(os.path.abspath(msgspec.__file__)))
    paths = (sys.prefix, sys.base_prefix, package, *sorted(linked), libraries)
    return tuple(dict.fromkeys(os.path.realpath(os.fsencode(path)) for path in paths))


def preset_rules(
    project_dir: bytes, home: bytes, uid: int, installed: tuple[bytes, ...] = (), config_dir: bytes | None = None
) -> RuleSet:
    """Return the preset for a project and a user; of two lines about the same path the first
    counts.

    ``installed`` are the directories that yolofs runs from; one in the project, and one that
    contains the home directory or the project, has no rule.  ``config_dir`` is where the user's own
    settings are, if not where they are mostly.
    """
    rules: dict[Subject, Rule] = {}
    for section in SECTIONS:
        source = SOURCE + section.title
        for line in section.rules:
            for key in _keys(line.key, project_dir, home, uid, installed, config_dir):
                rule = parse_rule(key, line.state, source, project_dir, home)
                rules.setdefault(subject(rule), rule)
    return RuleSet(tuple(rules.values()), EXEMPT)


def _keys(
    key: str, project_dir: bytes, home: bytes, uid: int, installed: tuple[bytes, ...], config_dir: bytes | None
) -> list[str]:
    """Return what a line stands for: the directories that it is about, and the user's number,
    filled in.
    """
    if key.startswith(_YOLOFS):
        apart = (path for path in installed if not _is_around(path, project_dir, home))
        return [spell(PathRule(path, RuleState.ASK, "")) + key[len(_YOLOFS) - 1 :] for path in apart]
    if key.startswith(_CONFIG) and config_dir is not None:
        path = config_dir + os.fsencode(key.removeprefix(_CONFIG))
        return [key, spell(PathRule(path, RuleState.ASK, ""))]
    if key.startswith(_UP):
        directories = []
        while project_dir != home and project_dir.startswith(home.rstrip(b"/") + b"/"):
            project_dir = os.path.dirname(project_dir)
            directories.append(PathRule(os.path.join(project_dir, key[len(_UP) :].encode()), RuleState.ASK, ""))
        return [spell(rule) for rule in directories]
    return [key.removesuffix("UID") + str(uid) if key.endswith("UID") else key]


def _is_around(path: bytes, project_dir: bytes, home: bytes) -> bool:
    """Whether a directory lies in the project, or the project or the home directory in it."""
    pairs = ((path, project_dir), (project_dir, path), (home, path))
    return any(is_below(inner, outer.rstrip(b"/")) for inner, outer in pairs)


def preset_lines() -> Iterator[PresetRule]:
    """Yield the lines of the preset in their order."""
    for section in SECTIONS:
        yield from section.rules


def _section(title: str, reason: str, state: RuleState, *keys: str | tuple[str, str]) -> Section:
    """Return a section whose lines share a state; a line is a key, or a key and a reason of its
    own.
    """
    lines = [(key, "") if isinstance(key, str) else key for key in keys]
    return Section(title, reason, tuple(PresetRule(key, state, why) for key, why in lines))


SECTIONS: tuple[Section, ...] = (
    _section(
        "The project",
        "everything may be done in it; changes are staged, and a commit shows them first.",
        RuleState.ALLOW,
        (".", "the project itself"),
    ),
    _section(
        "What governs yolofs",
        "a program must not loosen the rules that it works under, not even by a change that is committed unread.",
        RuleState.READ_ONLY,
        "./.yolofs.toml",
        (_CONFIG, "or where `XDG_CONFIG_HOME` has it"),
        (f"{_CONFIG}/config.toml", "the file that it leads to as well, where it is a link"),
        ("**/.yolofs", "after a commit it would look like a session, or like the link to one"),
    ),
    _section(
        "Secrets by their name",
        "wherever they lie, except in what is open as a whole (`…/**`).",
        RuleState.HIDDEN,
        (
            "**/.env",
            "programs go on without it; git takes a tracked one for deleted: allow that by its path",
        ),
        "**/.env.local",
        "**/.env.development.local",
        "**/.env.production",
        "**/.env.production.local",
        "**/.env.prod",
        "**/.env.staging",
        "**/.env.test.local",
        "**/.envrc.local",
        "**/.netrc",
        "**/.pgpass",
        "**/.git-credentials",
    ),
    _section(
        "Keys by their name",
        "not hidden, as git would take a tracked file that is hidden for a deleted one, and commit that.",
        RuleState.DENY,
        "**/*.pem",
        "**/*.key",
        "**/*.p12",
        "**/*.pfx",
        ("**/*.PEM", "as other systems spell it, and so the next three; a pattern tells upper from lower case"),
        "**/*.KEY",
        "**/*.P12",
        "**/*.PFX",
        "**/*.ppk",
        ("**/*.jks", "Java's key stores"),
        "**/*.keystore",
        ("**/*.kdbx", "KeePass"),
        "**/id_rsa",
        "**/id_dsa",
        "**/id_ecdsa",
        "**/id_ecdsa_sk",
        "**/id_ed25519",
        "**/id_ed25519_sk",
    ),
    _section(
        "Temporary files",
        "written by every build; whole, as packages are unpacked here.",
        RuleState.ALLOW,
        "/tmp/**",
        "/var/tmp/**",
        "/dev/shm/**",
    ),
    _section(
        "Credentials in temporary files",
        "",
        RuleState.HIDDEN,
        ("/tmp/krb5cc_UID", "Kerberos tickets; those of sshd have other names, see `KRB5CCNAME`: hide them by a rule"),
        ("/tmp/x509up_uUID", "grid certificates"),
        ("/tmp/tmux-UID", "sockets that lead into running terminals"),
    ),
    _section(
        "The system",
        "readable. Not `write-ask`: programs meet a refusal here every day and go on, as Python does when it cannot"
        " keep what it compiled; a question would stop them.",
        RuleState.READ_ONLY,
        "/bin/**",
        "/boot",
        "/dev",
        "/etc",
        ("/gnu/**", "Guix"),
        "/home/linuxbrew/.linuxbrew/**",
        "/lib/**",
        "/lib32/**",
        "/lib64/**",
        "/libx32/**",
        ("/nix/**", "Nix"),
        "/opt/**",
        "/proc",
        "/run",
        "/sbin/**",
        ("/snap/**", "programs of Snap"),
        "/sys",
        "/usr/**",
        "/var/cache",
        "/var/lib/alternatives",
        "/var/lib/apt",
        "/var/lib/dpkg",
        "/var/lib/flatpak/**",
        "/var/lib/rpm",
        "/var/lib/snapd/**",
    ),
    _section(
        "yolofs itself",
        "`YOLOFS` stands for the directories that yolofs and its Python run from, where they lie outside the project: a"
        " virtual environment, a checkout. Programs in the view call `yolofs` as well.",
        RuleState.READ_ONLY,
        "YOLOFS/**",
    ),
    _section(
        "Public certificates",
        "whole, as their names end in `.pem`.",
        RuleState.READ_ONLY,
        "/etc/ca-certificates/**",
        "/etc/pki/ca-trust/**",
        "/etc/pki/tls/cert.pem",
        "/etc/pki/tls/certs/**",
        "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
        "/etc/ssl/certs/**",
        "/var/lib/ca-certificates/**",
    ),
    _section(
        "Secrets of the system",
        "the disk refuses them as well, but not to root.",
        RuleState.DENY,
        "/etc/NetworkManager/system-connections",
        ("/etc/apt/auth.conf", "logins for package archives"),
        "/etc/apt/auth.conf.d",
        "/etc/cryptsetup-keys.d",
        "/etc/cups/passwd.md5",
        "/etc/davfs2/secrets",
        "/etc/docker/key.json",
        "/etc/exim4/passwd.client",
        "/etc/gshadow",
        "/etc/gshadow-",
        "/etc/ipsec.secrets",
        "/etc/krb5.keytab",
        "/etc/kubernetes",
        "/etc/ldap.secret",
        "/etc/letsencrypt",
        "/etc/mysql/debian.cnf",
        ("/etc/netplan", "passwords of wireless networks"),
        "/etc/openvpn",
        "/etc/pam_ldap.secret",
        "/etc/pki/tls/private",
        "/etc/postfix/sasl_passwd",
        "/etc/postfix/sasl_passwd.db",
        "/etc/ppp/chap-secrets",
        "/etc/ppp/pap-secrets",
        "/etc/rancher",
        "/etc/security/opasswd",
        "/etc/shadow",
        "/etc/shadow-",
        "/etc/ssh/ssh_host_dsa_key",
        "/etc/ssh/ssh_host_ecdsa_key",
        "/etc/ssh/ssh_host_ed25519_key",
        "/etc/ssh/ssh_host_rsa_key",
        "/etc/ssl/private",
        "/etc/sudoers",
        "/etc/sudoers.d",
        "/etc/wireguard",
        "/etc/wpa_supplicant",
        ("/var/cache/debconf/passwords.dat", "passwords given to packages as they were installed"),
        "/var/cache/debconf/passwords.dat-old",
    ),
    _section(
        "Secrets of running services",
        "programs take another way where they find nothing.",
        RuleState.HIDDEN,
        ("/run/containers", "logins of Podman"),
        ("/run/secrets", "of containers and of Kubernetes"),
        ("/run/user", "keyrings, agents and sockets of desktops"),
        ("/run/secrets.d", "where NixOS has them"),
        "/run/agenix",
        "/run/agenix.d",
        "/run/keys",
        ("/run/credentials", "of systemd's services"),
        ("/run/cloud-init/instance-data-sensitive.json", "of a machine in a cloud"),
        "/run/NetworkManager/system-connections",
    ),
    _section(
        "Home directories",
        "your own; those of others come next.",
        RuleState.ASK,
        ("~", "what no other line settles"),
    ),
    _section(
        "Other users' home directories",
        "",
        RuleState.HIDDEN,
        "/home",
        "/root",
    ),
    _section(
        "Everything else",
        "other disks, data of services, and what lies beside all this.",
        RuleState.ASK,
        "/",
    ),
    _section(
        "Caches",
        "written by package managers and compilers; whole, as packages are unpacked here.",
        RuleState.ALLOW,
        "~/.cache/**",
        ("~/.npm/**", "cache and logs of npm"),
        "~/.node-gyp/**",
        "~/.electron-gyp/**",
        "~/.yarn/berry/cache/**",
        "~/.local/share/pnpm/store/**",
        "~/.bun/install/cache/**",
        "~/.cargo/registry/**",
        "~/.cargo/git/**",
        ("~/.cargo/.package-cache", "a lock"),
        ("~/.cargo/.package-cache-mutate", "a lock"),
        ("~/.cargo/.global-cache", "what was used when"),
        "~/.cargo/.global-cache-journal",
        "~/go/pkg/**",
        "~/.ccache/**",
        "~/.gradle/caches/**",
        "~/.gradle/daemon/**",
        "~/.gradle/native/**",
        "~/.gradle/wrapper/**",
        "~/.m2/repository/**",
        "~/.ivy2/cache/**",
        "~/.nuget/packages/**",
        "~/.composer/cache/**",
        "~/.bundle/cache/**",
        "~/.cpan/build/**",
        "~/.cpan/sources/**",
        "~/.stack/pantry/**",
        "~/.cabal/packages/**",
        "~/.wget-hsts",
    ),
    _section(
        "Programs installed at home",
        "readable like those of the system; to install more of them, lift the rule.",
        RuleState.READ_ONLY,
        "~/bin/**",
        "~/.local/bin/**",
        "~/.local/lib/**",
        ("~/.pyenv/**", "Python"),
        "~/.local/share/uv/**",
        "~/.local/share/virtualenv/**",
        "~/.local/share/virtualenvs/**",
        "~/.local/share/pipx/**",
        "~/.local/pipx/**",
        "~/.local/share/hatch/**",
        "~/.poetry/**",
        "~/.conda/**",
        "~/anaconda3/**",
        "~/miniconda3/**",
        "~/miniforge3/**",
        "~/mambaforge/**",
        "~/micromamba/**",
        ("~/.nvm/**", "Node"),
        "~/.volta/**",
        "~/.fnm/**",
        "~/.local/share/fnm/**",
        "~/.local/share/pnpm/**",
        "~/.npm-global/**",
        "~/.npm-packages/**",
        "~/.config/yarn/global/**",
        "~/.bun/**",
        "~/.deno/**",
        ("~/.cargo/bin/**", "Rust"),
        "~/.cargo/env",
        "~/.cargo/config",
        "~/.cargo/config.toml",
        "~/.rustup/**",
        ("~/go/bin/**", "Go"),
        "~/.gvm/**",
        "~/sdk/**",
        ("~/.rbenv/**", "Ruby"),
        "~/.rvm/**",
        "~/.gem/**",
        "~/.local/share/gem/**",
        ("~/.sdkman/**", "Java"),
        "~/.jenv/**",
        "~/.jdks/**",
        ("~/.asdf/**", "several languages"),
        "~/.local/share/mise/**",
        "~/.config/mise",
        ("~/.dotnet/**", ".NET"),
        ("~/.ghcup/**", "Haskell"),
        "~/.stack/**",
        "~/.cabal/**",
        ("~/.opam/**", "OCaml"),
        ("~/.elan/**", "Lean"),
        ("~/.juliaup/**", "Julia"),
        "~/.julia/**",
        ("~/R/**", "R"),
        ("~/perl5/**", "Perl"),
        "~/.luarocks/**",
        "~/.linuxbrew/**",
        "~/.nix-profile",
        "~/.nix-defexpr/**",
        "~/.local/state/nix/**",
        "~/.guix-profile",
    ),
    _section(
        "Settings of shells and tools",
        "read at every start. No credentials belong in them, but some people put tokens into `~/.bashrc`: then say"
        " `yolofs rule hidden ~/.bashrc`.",
        RuleState.READ_ONLY,
        "~/.profile",
        "~/.bashrc",
        "~/.bash_profile",
        "~/.bash_login",
        "~/.bash_logout",
        "~/.bash_aliases",
        "~/.bash_completion",
        "~/.inputrc",
        "~/.dircolors",
        "~/.zshrc",
        "~/.zshenv",
        "~/.zprofile",
        "~/.zlogin",
        "~/.zlogout",
        "~/.p10k.zsh",
        "~/.oh-my-zsh/**",
        "~/.zsh/**",
        "~/.config/fish",
        "~/.local/share/fish",
        "~/.config/starship.toml",
        "~/.terminfo/**",
        "~/.gitconfig",
        ("~/.gitconfig.lock", "takes its place by `git config --global`: to have that changed, allow both"),
        "~/.config/git",
        "~/.gitignore_global",
        "~/.vimrc",
        "~/.vim/**",
        "~/.config/nvim/**",
        "~/.nanorc",
        "~/.tmux.conf",
        "~/.screenrc",
        "~/.config/ccache",
        "~/.gdbinit",
        "~/.config/gdb",
        "~/.config/matplotlib",
        "~/.config/ripgrep",
        "~/.ripgreprc",
        "~/.hgrc",
        "~/.config/user-dirs.dirs",
        "~/.config/locale.conf",
    ),
    _section(
        "Looked for above the project",
        "`UP` stands for each directory from the one above the project up to your home directory, if the project lies"
        " in it.",
        RuleState.READ_ONLY,
        "UP/package.json",
        "UP/pnpm-workspace.yaml",
        "UP/tsconfig.json",
        "UP/pyproject.toml",
        "UP/setup.cfg",
        "UP/tox.ini",
        "UP/pytest.ini",
        "UP/ruff.toml",
        "UP/.python-version",
        "UP/.node-version",
        "UP/.nvmrc",
        "UP/.ruby-version",
        "UP/.tool-versions",
        "UP/.editorconfig",
        "UP/.gitignore",
        "UP/.gitattributes",
        "UP/Cargo.toml",
        "UP/rust-toolchain.toml",
        "UP/go.work",
        "UP/.clang-format",
    ),
    _section(
        "Credentials",
        "keys, tokens and password stores, where the programs of that name keep them.",
        RuleState.HIDDEN,
        "~/.ssh/**",
        "~/.putty/**",
        "~/.gnupg/**",
        "~/.age/**",
        "~/.config/age/**",
        "~/.config/sops/**",
        "~/.pki/**",
        "~/.cert/**",
        "~/.local/share/pki/**",
        "~/.minisign/**",
        "~/.config/keybase/**",
        "~/.password-store/**",
        "~/.local/share/keyrings/**",
        "~/.gnome2/keyrings/**",
        "~/.local/share/kwalletd/**",
        "~/.kde/share/apps/kwallet/**",
        "~/.kde4/share/apps/kwallet/**",
        "~/.config/keepassxc/**",
        "~/.config/Bitwarden/**",
        "~/.config/Bitwarden CLI/**",
        "~/.config/1Password/**",
        "~/.config/op/**",
        "~/.op/**",
        "~/.lpass/**",
        "~/.local/share/lpass/**",
        "~/.config/lpass/**",
        "~/.local/share/plasma-vault/**",
        "~/.ecryptfs/**",
        "~/.Private/**",
        "~/.vaults/**",
        ("~/.netrc", "logins for ftp, curl and git"),
        "~/.authinfo",
        "~/.authinfo.gpg",
        "~/.curlrc",
        "~/.wgetrc",
        "~/.smbcredentials",
        "~/.davfs2/**",
        "~/.git-credentials",
        "~/.git-credential-cache/**",
        "~/.cache/git/credential/**",
        "~/.config/git/credentials",
        "~/.config/gh/**",
        "~/.config/hub",
        "~/.config/glab-cli/**",
        "~/.config/tea/**",
        ("~/.npmrc", "tokens of registries"),
        "~/.yarnrc",
        "~/.yarnrc.yml",
        "~/.bunfig.toml",
        ("~/.config/configstore/**", "logins of command line tools written for Node"),
        "~/.pypirc",
        ("~/.pip/**", "`pip.conf` may hold a login for a private index"),
        "~/.config/pip/**",
        "~/.config/uv/**",
        "~/.local/share/uv/credentials/**",
        "~/.config/pypoetry/**",
        "~/.condarc",
        "~/.continuum/**",
        "~/.anaconda/**",
        "~/.cargo/credentials",
        "~/.cargo/credentials.toml",
        "~/.gem/credentials",
        "~/.local/share/gem/credentials",
        "~/.bundle/config",
        "~/.gradle/gradle.properties",
        "~/.m2/settings.xml",
        "~/.m2/settings-security.xml",
        "~/.ivy2/.credentials",
        "~/.sbt/.credentials",
        "~/.composer/auth.json",
        "~/.config/composer/auth.json",
        "~/.nuget/NuGet/**",
        "~/.config/NuGet/**",
        "~/.hex/hex.config",
        "~/.cabal/config",
        "~/.docker/**",
        "~/.dockercfg",
        "~/.config/containers/auth.json",
        "~/.kube/**",
        "~/.minikube/**",
        "~/.config/helm/**",
        "~/.aws/**",
        "~/.azure/**",
        "~/.config/gcloud/**",
        "~/.boto",
        "~/.oci/**",
        "~/.aliyun/**",
        "~/.bluemix/**",
        "~/.config/doctl/**",
        "~/.config/hcloud/**",
        "~/.config/linode-cli",
        "~/.config/scw/**",
        "~/.fly/**",
        "~/.config/netlify/**",
        "~/.local/share/com.vercel.cli/**",
        "~/.config/.wrangler/**",
        "~/.wrangler/**",
        "~/.cloudflared/**",
        "~/.config/ngrok/**",
        "~/.ngrok2/**",
        "~/.terraformrc",
        "~/.terraform.d/credentials.tfrc.json",
        "~/.config/opentofu/credentials.tfrc.json",
        "~/.pulumi/credentials.json",
        "~/.vault-token",
        "~/.databrickscfg",
        "~/.snowflake/**",
        "~/.snowsql/**",
        "~/.dbt/**",
        "~/.kaggle/**",
        "~/.huggingface/**",
        "~/.cache/huggingface/token",
        "~/.cache/huggingface/stored_tokens",
        "~/.config/rclone/**",
        "~/.rclone.conf",
        "~/.s3cfg",
        "~/.passwd-s3fs",
        "~/.mc/**",
        "~/.config/stripe/**",
        "~/.twilio-cli/**",
        "~/.sentryclirc",
        "~/.circleci/**",
        "~/.travis/**",
        "~/.config/heroku/**",
        "~/.pgpass",
        "~/.my.cnf",
        "~/.mylogin.cnf",
        "~/.config/borg/**",
        "~/.ansible/galaxy_token",
        "~/.vault_pass",
        "~/.bitcoin/**",
        "~/.electrum/**",
        "~/.ethereum/**",
        "~/.config/solana/**",
        "~/.monero/**",
    ),
    _section(
        "Browsers, mail and chats",
        "cookies are as good as passwords.",
        RuleState.HIDDEN,
        "~/.mozilla/**",
        "~/.config/mozilla/**",
        "~/.librewolf/**",
        "~/.waterfox/**",
        "~/.local/share/torbrowser/**",
        "~/.config/google-chrome/**",
        "~/.config/google-chrome-beta/**",
        "~/.config/google-chrome-unstable/**",
        "~/.config/chromium/**",
        "~/.config/BraveSoftware/**",
        "~/.config/microsoft-edge/**",
        "~/.config/microsoft-edge-dev/**",
        "~/.config/vivaldi/**",
        "~/.config/opera/**",
        "~/.config/epiphany/**",
        "~/.local/share/epiphany/**",
        "~/.config/falkon/**",
        "~/.local/share/qutebrowser/**",
        "~/.cache/mozilla/**",
        "~/.cache/librewolf/**",
        "~/.cache/waterfox/**",
        "~/.cache/google-chrome/**",
        "~/.cache/google-chrome-beta/**",
        "~/.cache/google-chrome-unstable/**",
        "~/.cache/chromium/**",
        "~/.cache/BraveSoftware/**",
        "~/.cache/microsoft-edge/**",
        "~/.cache/microsoft-edge-dev/**",
        "~/.cache/vivaldi/**",
        "~/.cache/opera/**",
        "~/.cache/epiphany/**",
        "~/.cache/falkon/**",
        "~/.cache/qutebrowser/**",
        ("~/.var/app/**", "data of programs from Flatpak, browsers among them"),
        ("~/snap/**", "data of programs from Snap"),
        "~/.thunderbird/**",
        "~/.cache/thunderbird/**",
        "~/.config/evolution/**",
        "~/.local/share/evolution/**",
        "~/.cache/evolution/**",
        "~/.config/geary/**",
        "~/.local/share/geary/**",
        "~/.cache/geary/**",
        "~/.claws-mail/**",
        "~/.mutt/**",
        "~/.muttrc",
        "~/.config/mutt/**",
        "~/.config/neomutt/**",
        "~/.msmtprc",
        "~/.config/msmtp/**",
        "~/.mbsyncrc",
        "~/.offlineimaprc",
        "~/.fetchmailrc",
        "~/.getmail/**",
        "~/Mail/**",
        "~/Maildir/**",
        "~/mail/**",
        "~/.config/Signal/**",
        "~/.config/Slack/**",
        "~/.config/discord/**",
        "~/.config/Element/**",
        "~/.config/Microsoft/**",
        "~/.config/teams-for-linux/**",
        "~/.local/share/TelegramDesktop/**",
        "~/.purple/**",
        "~/.weechat/**",
        "~/.config/weechat/**",
        "~/.cache/weechat/**",
        "~/.irssi/**",
        "~/.zoom/**",
        "~/.Skype/**",
    ),
    _section(
        HISTORIES,
        "what was typed at a prompt is often a password.",
        RuleState.HIDDEN,
        "~/.bash_history",
        "~/.zsh_history",
        "~/.zhistory",
        "~/.histfile",
        "~/.history",
        "~/.local/share/fish/fish_history",
        "~/.local/share/atuin/**",
        "~/.python_history",
        "~/.node_repl_history",
        "~/.irb_history",
        "~/.psql_history",
        "~/.mysql_history",
        "~/.mariadb_history",
        "~/.sqlite_history",
        "~/.rediscli_history",
        "~/.dbshell",
        "~/.mongodb/**",
        "~/.lesshst",
        ("~/.lesshsQ", "by which less replaces the one before"),
        "~/.local/state/lesshst",
        "~/.local/state/lesshsQ",
        "~/.viminfo",
        "~/.local/state/nvim/**",
        "~/.gdb_history",
        "~/.ipython/profile_default/history.sqlite",
        "~/.local/share/recently-used.xbel",
        "~/.local/share/Trash/**",
        "~/.Xauthority",
        "~/.ICEauthority",
    ),
)
