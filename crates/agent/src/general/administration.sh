#!/bin/busybox sh
# A shell session to train with: names and modes, processes and signals, the system. Ends with the first failure.
set -e
umask 022

# Links, names and modes.
mkdir -p project/src/lib project/doc
for name in one two three; do
    echo "see $name" > project/doc/$name.md
    echo "int $name;" > project/src/$name.c
done
ln project/src/two.c project/second.c
ln -s src project/link
readlink -f project/link/two.c
mv project/doc project/documents
mv project/second.c project/src/lib/
chmod 640 project/src/*.c
chmod -R u+w project
touch -d '2020-01-02 03:04:05' project/documents/one.md
test project/src/one.c -nt project/documents/one.md
cp -a project again
ls -lR project again > listing

# Processes: subshells, pipes by name, signals, jobs.
echo "$(echo "$(echo nested)")" | (read -r word; echo "got $word")
mkfifo channel
cat channel > received &
echo 'through a pipe with a name' > channel
wait $!
trap 'echo caught >> caught' USR1
kill -USR1 $$
sleep 100 &
sleeper=$!
kill -0 $sleeper
kill -TERM $sleeper
wait $sleeper || true
for number in 1 2; do
    sh -c "exit $number" || last=$?
done
test "$last" = 2
yes | head -n 50 | wc -l
env PATH="$PATH" VALUE=1 sh -c 'echo $VALUE $# $0' one two

# The system.
uname -a
date +%s > now
id -u
pwd
if test -d /proc/self; then
    ps > processes
    cat /proc/self/status /proc/self/maps /proc/meminfo /proc/stat /proc/mounts /proc/uptime > state || true
    cat /proc/loadavg /proc/version /proc/cpuinfo | wc -l
    ls -l /proc/self/fd
    free | head -n 2
fi
cat << TEXT > here
$(wc -l < listing) lines, $last last
TEXT
while read -r count rest; do
    : "$count" "$rest"
done < here

# Away with all.
find again -name '*.md' -exec rm {} +
rm -rf project again received channel
exit 0
