#!/usr/bin/env bash
# Compares what the programs print for --help with the pages: the commands of the pages exist, with their options, and
# each option of a program is on a page.
#   test/e2e/help.sh BUILD_DIR
set -euo pipefail

cd "$(dirname "$0")/../.."
export PATH=$1/bin:$PATH
pages=(README.md CONTRIBUTING.md SECURITY.md docs/*.md docs/policies/*.md)
fail() {
  echo "$1" >&2
  exit 1
}

# The commands of the pages, in code blocks and between backticks: a program, words and options.
commands() {
  awk '/^```/ { inside = !inside; next } inside && !/   / { sub(/^\$ /, ""); sub(/^kubectl .* -- /, ""); print }' "${pages[@]}"
  grep -ohE '`[^`]+`' "${pages[@]}" | tr -d '\`'
}
checked=0
while read -r program line; do
  words=() options=()
  for word in $line; do
    case $word in
      -) ;;
      -*) options+=("${word%%=*}") ;;
      [a-z]*) [[ $word == *[./=]* || ${#options[@]} -gt 0 ]] || words+=("$word") ;;
    esac
  done
  if [ "${options[0]:-}" = --cluster ]; then words=(--cluster why); fi
  help=$("$program" "${words[@]}" --help) || fail "a page names $program $line, which is not a command"
  for option in "${options[@]}"; do
    [ "$option" = --cluster ] || grep -qE -- "^ +(-., ?)?${option}[, =]" <<<"$help  $program --help" ||
      fail "a page names $program $line, which has no $option"
  done
  checked=$((checked + 1))
done < <(commands | sed -nE '/^(qrmctl|qrmd|qrm-(scheduler|plugin-[a-z]+|cci-driver)) /{s/ +#.*//; s/ *[0-9]?[|>&;].*//; p}' |
  grep -vE '^[a-z-]+ [a-z -]+: ' | sort -u)
[ "$checked" -ge 130 ] || fail "the pages have $checked commands only"

# qrmctl's are compared with its page by QrmctlPageTest.
while read -r program; do
  for option in $($program --help | sed -nE 's/^ +(-., ?)?--([a-z-]+).*/\2/p' | sort -u); do
    [[ $option =~ ^(help|version)$ ]] || grep -qE -- "(--|\`)$option\b" "${pages[@]}" || fail "no page has --$option of $program"
  done
done <<'END'
qrmd
qrm-scheduler serve
qrm-scheduler simulate
qrm-plugin-check
qrm-plugin-cpu
qrm-plugin-memory
qrm-plugin-nic
qrm-cci-driver
END
echo "$checked commands of the pages exist"
