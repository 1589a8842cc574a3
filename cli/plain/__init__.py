"""What short commands do that programs call again and again: without click, which takes as long to
import as all that they need.
"""
