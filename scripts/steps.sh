# shellcheck shell=bash
# Sourced by scripts that take minutes: says before each step what it does and about how long it takes, and when the
# outermost script ends, how long each step took.
#   step "TITLE, about TIME" COMMAND [ARGUMENT...]

if [ -z "${QRM_STEPS:-}" ]; then
  QRM_STEPS=$(mktemp)
  export QRM_STEPS
  trap 'print_steps; rm -f "$QRM_STEPS"' EXIT
fi

step() {
  local title=$1 begin=$SECONDS status=0
  shift
  printf '\n######## %s\n' "$title"
  "$@" || status=$?
  note_step "${title%%, about*}" $((SECONDS - begin))
  return $status
}

# note_step TITLE SECONDS
note_step() { printf '%6d s  %s\n' "$2" "$1" >>"$QRM_STEPS"; }

print_steps() {
  printf '\n######## seconds by step, %d in all\n' "$SECONDS"
  cat "$QRM_STEPS"
}
