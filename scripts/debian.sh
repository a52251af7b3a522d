# shellcheck shell=bash
# Functions that take packages from Debian's archive and install none of them; for scripts that `source` this file and
# have a function `fail`.

# The URI of this machine's Debian archive: whatever mirror its administrator chose.
archive_uri() {
  apt-get indextargets --format '$(IDENTIFIER)|$(COMPONENT)|$(RELEASE)|$(CODENAME)|$(REPO_URI)' |
    awk -F'|' -v own="$1" '$1 == "Packages" && $2 == "main" && ($3 == own || $4 == own) {
      print $5; exit }'
}

# private_apt DIR get|cache ARGUMENT...: apt with lists, cache, status and sources of its own below `DIR`.
private_apt() {
  local dir=$1 command=$2
  shift 2
  "apt-$command" -qq -o "Dir::Etc::sourcelist=$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
    -o "Dir::State=$dir" -o "Dir::State::lists=$dir/lists" -o "Dir::State::status=$dir/status" \
    -o "Dir::Cache=$dir/cache" -o "Dir::Log=$dir/log" -o APT::Sandbox::User=root \
    -o Acquire::Languages=none -o Acquire::Retries=3 -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
    "$@"
}

# make_apt DIR SUITE...: makes `DIR` the place of such an apt, for which nothing is installed yet, with the suites of
# this machine's archive. Prints the archive's URI.
make_apt() {
  local dir=$1 own uri option= wanted
  shift
  own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  uri=$(archive_uri "$own")
  [[ -n $uri ]] || fail "cannot find a Debian archive: no '$own main' in this machine's apt sources;" \
    "add one to /etc/apt/sources.list.d and run apt-get update"
  [[ ! -e /usr/share/keyrings/debian-archive-keyring.gpg ]] ||
    option='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
  mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial" "$dir/log"
  : >"$dir/status"
  for wanted; do
    echo "deb $option $uri $wanted main"
  done | sort -u >"$dir/sources.list"
  private_apt "$dir" get update >&2 || fail "cannot read the lists of Debian $* from $uri: see above;" \
    "check the network or the mirror"
  echo "$uri"
}
