"""Which variables a command gets."""

from __future__ import annotations

from yolofs.config.settings import RunSettings
from yolofs.sandbox.environment import hidden_variables, without


def test_tokens_and_passwords_are_left_out_by_default() -> None:
    names = [
        "HOME",
        "PATH",
        "SSH_AUTH_SOCK",
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",
        "TOKENIZERS",
        "X_API_KEY",
        "OLDPWD",
    ]
    left_out = hidden_variables(names, RunSettings().hide_env, ())
    assert left_out == ["AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "X_API_KEY"]


def test_variables_called_just_token_or_password_are_left_out() -> None:
    names = ["TOKEN", "SECRET", "PASSWORD", "API_KEY", "SECRET_KEY", "CREDENTIALS", "PGPASSWORD", "GITHUB_PAT"]
    assert hidden_variables(names, RunSettings().hide_env, ()) == sorted(names)


def test_a_variable_to_keep_is_not_hidden() -> None:
    assert hidden_variables(["A_TOKEN", "B_TOKEN"], ["*_TOKEN"], ["B_*"]) == ["A_TOKEN"]


def test_a_variable_in_lower_case_does_not_fit_a_pattern_in_upper_case() -> None:
    assert hidden_variables(["a_token"], ["*_TOKEN"], []) == []


def test_variables_that_are_not_hidden_stay() -> None:
    assert without({"A": "1", "B": "2"}, ["A"]) == {"B": "2"}
