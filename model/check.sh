#!/usr/bin/env bash
# Explores small configurations of the model, which must hold, and wrong readings, which must not.
#   model/check.sh [short|long]
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

explore() { # DEFS... → "errors: N"
  (
    mkdir -p "$work/run" && cd "$work/run" && rm -f ./*
    spin -a "$@" "$OLDPWD/bounded.pml" >spin.out 2>&1
    gcc -O2 -w -DSAFETY -DNOFAIR -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM=4000 -o pan pan.c
    timeout "${LIMIT:-300}" ./pan -E -m300000 >pan.out 2>&1 || true
    grep -oE 'errors: [0-9]+' pan.out || echo "unfinished"
  )
}

one_one="-DCAP=1 -DNS=1 -DNR=1 -DOPS=2 -DROPS=2"
two_one="-DCAP=1 -DNS=2 -DNR=1 -DOPS=1 -DROPS=2"
one_two="-DCAP=1 -DNS=1 -DNR=2 -DOPS=2 -DROPS=1"
status=0
expect() { # WANTED NAME DEFS...
  local wanted=$1 name=$2
  shift 2
  local got
  got=$(explore "$@")
  printf '%-44s %s\n' "$name" "$got"
  [ "$got" = "$wanted" ] || { echo "expected $wanted" >&2; status=1; }
}

expect "errors: 0" "cancel and drop, 1 x 1" $one_one -DCANCELS=1 -DDROPS=1
expect "errors: 0" "cancel, 2 x 1" $two_one -DCANCELS=1
expect "errors: 0" "dropped deliveries, 1 x 2" $one_two -DDROPS=1
expect "errors: 0" "close, 2 x 1" $two_one -DCLOSE=1
expect "errors: 0" "rendezvous, cancel and drop, 2 x 2" -DCAP=0 -DNS=2 -DNR=2 -DOPS=1 -DROPS=1 -DCANCELS=1 -DDROPS=1 -DTRY
expect "errors: 0" "rendezvous, close and cancel, 2 x 1" -DCAP=0 -DNS=2 -DNR=1 -DOPS=1 -DROPS=2 -DCANCELS=1 -DCLOSE=1
expect "errors: 0" "rendezvous, close_with(Admit), 2 x 1" -DCAP=0 -DNS=2 -DNR=1 -DOPS=1 -DROPS=2 -DCLOSE=2 -DDROPS=1
expect "errors: 0" "close_with(Admit), 2 x 1" $two_one -DCLOSE=2 -DCANCELS=1
expect "errors: 1" "rendezvous, B19 leaves TXW" -DCAP=0 -DNS=1 -DNR=1 -DOPS=1 -DROPS=1 -DB19
expect "errors: 0" "permits and close" $one_one -DPERMITS -DCLOSE=1
expect "errors: 0" "permits and close_with(Admit)" $one_one -DPERMITS -DCLOSE=2
expect "errors: 1" "B1 parks with room" $one_one -DCANCELS=1 -DDROPS=1 -DB1
if [ "${1:-short}" = long ]; then
  LIMIT=1200
  expect "errors: 0" "rendezvous, close and cancel, 2 x 2" -DCAP=0 -DNS=2 -DNR=2 -DOPS=1 -DROPS=1 -DCANCELS=1 -DCLOSE=1
  expect "errors: 0" "rendezvous, close_with(Admit), 3 x 1" -DCAP=0 -DNS=3 -DNR=1 -DOPS=1 -DROPS=2 -DCLOSE=2 -DDROPS=1
  expect "errors: 0" "cancel and close, 2 x 2" -DCAP=1 -DNS=2 -DNR=2 -DOPS=1 -DROPS=1 -DCANCELS=1 -DCLOSE=1
fi
exit $status
