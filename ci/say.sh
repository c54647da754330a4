# Sourced by the checks: how they speak. A check that can't run says so where nobody can miss it, and is not an error.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

skip() {
  printf '\n################################################################\n'
  printf '#  NOT CHECKED: %s\n' "$@"
  printf '################################################################\n\n'
}

# The toolchain that has Miri and the sanitizers, or nothing.
nightly() { cargo +nightly --version >/dev/null 2>&1; }

host() { rustc -vV | sed -n 's/^host: //p'; }
