#!/usr/bin/env bash
# The pages of docs/policies, the quickstart and the seven questions: their commands are typed in the playground of
# scripts/try.sh, and the output is compared with the page.
#   policies.sh BUILD_DIR [PAGE...]     default: all
set -euo pipefail

cd "$(dirname "$0")/../.."
build=$(realpath "$1")
shift
work=$(mktemp -d)
started=()
finish() {
  for ((i = ${#started[@]} - 1; i >= 0; --i)); do kill "${started[i]}" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
# shellcheck source=played_node.sh
. test/e2e/played_node.sh

# Types what the page says into a shell with running jobs, and keeps the output as a terminal would show it.
type_commands() {
  local line pod
  while IFS= read -r line; do
    [[ $line == '$ '* ]] || continue
    echo "$line"
    eval "${line#\$ }" || true
    if [[ $line == *'&' ]]; then
      started+=($!)
      pod=${line##*>}
      await "cat ${pod%% *}" "It runs until this is interrupted."
    fi
  done <commands
}

# Times, ages and counts differ, and with them the widths of columns; and pages fold long lines.
words() {
  sed -E 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]+Z/TIME/g; s/\b([0-9]+[dhms])+\b/AGE/g; s/[0-9]+ (us|run|update)s?\b/N \1/g
    s|/tmp/qrm-try\.[A-Za-z0-9]+|/tmp/qrm-try|g' "$1" | tr -s '[:space:]' '\n'
}

# In the page's playground, which is up within a minute.
follow_page() {
  local page=$1 root=$PWD from=$SECONDS
  scripts/try.sh --build "$build" --page-port 0 "$page" >"$work/try" 2>&1 &
  started+=($!)
  until grep -qs "^It stays until this is interrupted" "$work/try"; do
    ((SECONDS - from <= 60)) && kill -0 "${started[0]}" 2>/dev/null || fail "scripts/try.sh $page is not up: $(cat "$work/try")"
    sleep 0.1
  done
  # shellcheck disable=SC1090
  . "$(sed -n 's/^ *source //p' "$work/try")"
  type_commands >"$work/shown" 2>&1
  if [ "$page" = docs/questions.md ]; then
    diff -u <(words commands) <(words "$work/shown") || fail "$page shows otherwise than a node: $(cat "$work/shown")"
    [ "$(grep -c '^## .*?$' "$root/$page")" -eq 7 ] && [ "$(grep -c '^\$ ' commands)" -eq 7 ] || fail "$page has not one command for each of seven questions"
    grep -qF "($page)" "$root/README.md" || fail "README.md does not lead to $page"
  else
    diff -u commands <(sed 's/ *$//' "$work/shown") || fail "$page shows otherwise than a node: $(tail -5 node/qrmd.log)"
  fi
  cd "$root"
}

# A node for each page.
if [ -z "${QRM_POLICY_PAGE:-}" ]; then
  mapfile -t pages < <(grep -l '^# qrmd.yaml$' docs/questions.md docs/quickstart.md docs/policies/*.md)
  for page in "${@:-${pages[@]}}"; do
    QRM_POLICY_PAGE=$page "test/e2e/$(basename "$0")" "$build"
  done
else
  follow_page "$QRM_POLICY_PAGE"
fi
