#!/usr/bin/env bash
# fresh.sh COMMAND...: runs a command in a clean clone of HEAD inside a bare Debian 12, as a new machine would.
#
# The tree is debootstrap's smallest plus git. Where packages come from is read from this machine's own apt
# configuration. The bare tree is kept as build/fresh/bookworm-ARCHITECTURE.tar; each run unpacks it anew. Mounts live in a
# namespace of their own, which ends with the command: whatever happens, nothing stays mounted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
suite=bookworm
cache=$PWD/build/fresh

say() { printf 'fresh: %s\n' "$*" >&2; }
stop() {
  say "$*"
  exit 1
}

# The mirror of Debian itself among apt's sources. A list of mirrors stands for its first.
mirror() {
  local uri
  # shellcheck disable=SC2016 # apt-get's own names, not the shell's
  uri=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' |
    awk -v suite="$suite" '$2 == suite && $3 == "main" { print $1; exit }')
  if [[ $uri == mirror+file:* ]]; then
    uri=$(awk '!/^#/ && NF { print $1; exit }' "${uri#mirror+file:}")
  fi
  [[ -n $uri ]] || stop "apt's sources on this machine name no mirror of $suite main"
  printf '%s\n' "$uri"
}

# private COMMAND...: with mounts and processes of its own, which end with it. In the background, so that a signal to this
# script is acted on at once.
private() {
  unshare --mount --pid --fork --kill-child -- "$@" &
  child=$!
  local status=0
  wait "$child" || status=$?
  child=
  return "$status"
}

# On every way out: ends what runs inside, then removes the tree.
child=
work=
clean_up() {
  if [[ -n $child ]]; then
    kill -KILL "$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
  fi
  [[ -n $work ]] || return 0
  # What is being killed may still write for a moment.
  rm -rf --one-file-system "$work" 2>/dev/null || { sleep 1 && rm -rf --one-file-system "$work"; }
}

make_tarball() {
  local tarball=$1 raw=$work/bare uri
  uri=$(mirror)
  say "making a bare $suite tree (once; kept as $tarball)"
  private debootstrap --variant=minbase --include=git "$suite" "$raw" "$uri" >&2 || stop "debootstrap failed, see above"
  rm -rf "$raw/var/cache/apt/archives" "$raw/var/lib/apt/lists"
  mkdir -p "$raw/var/cache/apt/archives/partial" "$raw/var/lib/apt/lists/partial"
  tar -C "$raw" -cf "$tarball.part" .
  mv "$tarball.part" "$tarball"
  rm -rf --one-file-system "$raw"
}

# carry FILE-OR-FOLDER TREE: to the same place in the tree, links followed.
carry() {
  [[ -e $1 ]] || return 0
  mkdir -p "$2$(dirname "$1")"
  rm -rf "$2$1"
  cp -RL "$1" "$2$(dirname "$1")/"
}

# How this machine reaches its package mirror, without the hooks that its own programs put into apt's configuration.
carry_apt() {
  local tree=$1 path
  for path in /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/preferences /etc/apt/preferences.d \
    /etc/apt/auth.conf /etc/apt/auth.conf.d /etc/apt/keyrings /etc/apt/trusted.gpg /etc/apt/trusted.gpg.d \
    /etc/apt/mirrors /usr/share/keyrings /usr/local/share/ca-certificates /etc/ssl/certs/ca-certificates.crt \
    /etc/resolv.conf /etc/hosts; do
    carry "$path" "$tree"
  done
  apt-config dump Acquire | grep -v -e ' "";$' -e '^Acquire::IndexTargets' >"$tree/etc/apt/apt.conf.d/90carried"
  # Certificates and keys that those settings name.
  while read -r path; do
    carry "$path" "$tree"
  done < <(sed -n 's|^Acquire::.* "\(/[^"]*\)";$|\1|p' "$tree/etc/apt/apt.conf.d/90carried")
}

# Inside the namespaces: mounts, then the command in the tree.
enter() {
  local tree=$1
  shift
  mount -t proc proc "$tree/proc"
  mount --rbind /dev "$tree/dev"
  mount --make-rslave "$tree/dev"
  local environment=(HOME=/tmp PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb)
  local name
  for name in http_proxy https_proxy no_proxy; do
    [[ -z ${!name-} ]] || environment+=("$name=${!name}")
  done
  exec chroot "$tree" env -i "${environment[@]}" sh -c 'cd /kvasir && "$@"; exit $?' sh "$@"
}

main() {
  [[ $EUID == 0 ]] || stop "needs root"
  private true || stop "this machine allows no mount namespaces (in a container, give it the right to mount)"
  mkdir -p "$cache"
  trap clean_up EXIT
  trap 'exit 130' INT TERM HUP
  work=$(mktemp -d "$cache/run-XXXXXX")
  local tarball
  tarball=$cache/$suite-$(dpkg --print-architecture).tar
  [[ -f $tarball ]] || make_tarball "$tarball"

  say "unpacking"
  mkdir "$work/tree"
  tar -C "$work/tree" -xf "$tarball"
  carry_apt "$work/tree"
  [[ -z $(git status --porcelain) ]] || say "there are changes that are not committed; they are not in the clone"
  git clone --quiet --no-hardlinks . "$work/tree/kvasir"
  say "running '$*' on $(git rev-parse --short HEAD)"
  private "$PWD/tools/fresh.sh" --enter "$work/tree" "$@"
}

case ${1-} in
  --enter) shift && enter "$@" ;;
  '') stop "wants a command" ;;
  *) main "$@" ;;
esac
