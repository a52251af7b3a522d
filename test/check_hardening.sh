#!/usr/bin/env bash
# Checks that programs are built so that an overwritten stack, table of addresses or buffer aborts them.
#   check_hardening.sh PROGRAM...
set -euo pipefail

failed=0
all=
# expect PROGRAM WHAT PATTERN TEXT
expect() {
  if ! grep -q -E -- "$3" <<<"$4"; then
    echo "$1 lacks $2; build it with QRM_HARDENED=ON, as preset release does" >&2
    failed=1
  fi
}

for program in "$@"; do
  elf=$(readelf -hldW "$program")
  expect "$program" "an address of its own at each start (PIE)" 'Type: +DYN' "$elf"
  expect "$program" "tables that are read-only after the start (RELRO)" 'GNU_RELRO' "$elf"
  expect "$program" "symbols that are bound at the start (BIND_NOW)" 'FLAGS.*NOW' "$elf"
  expect "$program" "a stack that is not executable" 'GNU_STACK.* RW +0x' "$elf"
  # The functions that the checks of the compiler and of the libraries call.
  called=$(readelf -W --dyn-syms "$program")
  expect "$program" "guards of its stack (-fstack-protector-strong)" '__stack_chk_fail' "$called"
  all+=$called
  expect "$program" "checks of the C++ library's containers (_GLIBCXX_ASSERTIONS)" '__glibcxx_assert_fail|__replacement_assert' "$called"
  if [[ $elf == *X86-64* ]]; then
    expect "$program" "marks where a jump may lead (-fcf-protection)" 'endbr64' "$(objdump --disassemble=main "$program")"
  fi
done
# Not every program has a buffer whose bounds are unknown when it is compiled.
expect "$*" "checks of the C library's buffers (_FORTIFY_SOURCE)" ' __[a-z]*(mem|str|printf|read|recv|poll)[a-z]*_chk' "$all"
exit $failed
