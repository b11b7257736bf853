# The requests of EventNative's scheduler design, each as the design writes it, to the node at $URL with the token
# $TOKEN. The node has the design's collection, with its schedule.
set -euo pipefail

# request sends a request of the design with its parameters filled in.
request() {
	local path=${1#* }
	path=${path//'${task_id}'/$task_id}
	path=${path//'start={utc_timestamp}'/start=$start}
	path=${path//'end={utc_timestamp}'/end=$end}
	path=${path//'{status}'/$status}
	path=${path//'source={}'/source=$source}
	path=${path//'collection={}'/collection=$collection}
	answer=$(curl -sS -X "${1%% *}" -H "X-Admin-Token: $TOKEN" -w '%{http_code}' "$URL$path")
	code=${answer: -3} answer=${answer%$'\n'*}
}

# want fails unless the last request has a status and an answer that matches a pattern.
want() {
	[[ $code =~ ^($1)$ && $answer =~ ^$2$ ]] || {
		echo "answered $code $answer, want $1 $2"
		exit 1
	}
}

source=source_id collection=sample_collection task_id= status=
start=$(date -u +%Y-%m-%dT%H:%M:%SZ) end=9999-12-31T23:59:59Z
uuid='[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'
time='[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z'

# The design's schedule fires each second in the first hour of a day, and would make runs of its own then.
request 'POST /schedules/source_id/sample_collection/pause'
want 200 '.*"paused":true.*'

# A run is made, or told while it has not ended.
request 'POST /tasks/?source={}&collection={}'
want '200|201' "\{\"task_id\":\"source_id_sample_collection_$uuid\"\}"
task_id=${answer#*:\"} task_id=${task_id%\"\}}

until [[ $answer == *'"status":"SUCCESS"'* ]]; do
	request 'GET /tasks/${task_id}'
	want 200 '.*"status":"(SCHEDULED|RUNNING|SUCCESS)".*'
done
task="\{\"id\":\"$task_id\",\"source\":\"source_id\",\"collection\":\"sample_collection\",\"priority\":[1-9][0-9]*,"
task+="\"created_at\":\"$time\",\"started_at\":\"$time\",\"finished_at\":\"$time\",\"status\":\"SUCCESS\"\}"
want 200 "$task"

request 'GET /tasks/${task_id}/logs?start={utc_timestamp}&end={utc_timestamp}'
want 200 "\{\"logs\":\[\{\"time\":\"$time\",\"message\":\"[^\"]*\",\"level\":\"info\"\}\]\}"
request 'GET /tasks/${task_id}/logs'
want 200 '\{"logs":\[\{.*\}\]\}'

status=SUCCESS
request 'GET /tasks?start={utc_timestamp}&end={utc_timestamp}&status={status}&source={}&collection={}'
want 200 "\{\"tasks\":\[$task(,\{.*\})?\]\}"
status=failed
request 'GET /tasks?start={utc_timestamp}&end={utc_timestamp}&status={status}&source={}&collection={}'
want 200 '\{"tasks":\[\]\}'
request 'GET /tasks?start={utc_timestamp}&end={utc_timestamp}&source={}'
want 200 "\{\"tasks\":\[$task(,\{.*\})?\]\}"

# A time without anything, and what is not there.
start=$end
request 'GET /tasks/${task_id}/logs?start={utc_timestamp}&end={utc_timestamp}'
want 200 '\{"logs":\[\]\}'
collection=another
request 'POST /tasks/?source={}&collection={}'
want 400 '.*"field":"collection".*'
TOKEN=nobody
request 'GET /tasks/${task_id}'
want 401 '.*"message":.*'
