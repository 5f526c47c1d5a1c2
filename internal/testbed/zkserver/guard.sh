# Guards one server: it starts and stops it as told on standard input, and kills
# it and removes its folder when that ends. Arguments: the folder. Environment:
# ELASTICRON_CFG (zoo.cfg, "@" stands for the folder), ELASTICRON_ID, ELASTICRON_CP
# (the class path; searched when empty), ELASTICRON_JAVA (options).
trap '' PIPE
dir=$1
mkdir -p "$dir/data" || exit 1
printf '%s\n' "$ELASTICRON_CFG" | sed "s|@|$dir|g" >"$dir/zoo.cfg"
printf '%s\n' "$ELASTICRON_ID" >"$dir/data/myid"
printf '%s\n' '<configuration><appender name="E" class="ch.qos.logback.core.ConsoleAppender"><encoder><pattern>%level %logger{0} %msg%n</pattern></encoder></appender><root level="WARN"><appender-ref ref="E"/></root></configuration>' >"$dir/logback.xml"

cp=$ELASTICRON_CP
if [ -z "$cp" ] && [ -e /usr/share/java/zookeeper.jar ]; then
	cp=/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar
fi
if [ -z "$cp" ]; then
	for lib in ./lib /apache-zookeeper-*/lib; do
		for jar in "$lib"/zookeeper-[0-9]*.jar; do
			[ -e "$jar" ] && cp="$lib/*"
		done
	done
fi

serve() {
	# The options are words on purpose.
	java $ELASTICRON_JAVA -Dlogback.configurationFile="$dir/logback.xml" \
		-cp "$cp" org.apache.zookeeper.server.quorum.QuorumPeerMain "$dir/zoo.cfg" </dev/null >&2 &
	echo $! >"$dir/pid"
	wait $!
	code=$?
	echo gone >"$dir/gone"
	echo "exited $code"
}

signal() {
	[ ! -s "$dir/pid" ] || [ -e "$dir/gone" ] || kill -s "$1" "$(cat "$dir/pid")" 2>/dev/null
}

# stopped waits until every thread has noticed, where /proc can tell.
stopped() {
	[ ! -e "$dir/gone" ] || return 0
	for task in "/proc/$(cat "$dir/pid")"/task/*/stat; do
		while read -r line 2>/dev/null <"$task"; do
			case ${line##*) } in
			T*) break ;;
			esac
			sleep 0.01
		done
	done
}

end() {
	signal KILL
	[ -z "$server" ] || wait "$server"
	server=
}

server=
echo done ready 0
while read -r word number; do
	case $word in
	start)
		rm -f "$dir/pid" "$dir/gone"
		serve &
		server=$!
		until [ -s "$dir/pid" ]; do sleep 0.01; done
		;;
	kill) end ;;
	stop)
		signal STOP
		stopped
		;;
	continue) signal CONT ;;
	esac
	echo "done $word $number"
done
end
rm -rf "$dir"
rmdir "$(dirname "$dir")" 2>/dev/null
exit 0
