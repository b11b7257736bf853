import assert from "node:assert";
import { client } from "./ts/client.gen";
import { getReplay, getTasksId, postTasks } from "./ts/sdk.gen";

client.setConfig({ baseUrl: process.env.URL, auth: (scheme) => (scheme.scheme === "bearer" ? process.env.TOKEN : undefined) });
const { data, error } = await postTasks({ body: { behavior: "noop", id: "generated/ts" }, query: { wait: "30s" }, headers: { "Idempotency-Key": "ts" } });
assert.equal(data?.status, "SUCCESS", JSON.stringify(error));
const shown = await getTasksId({ path: { id: "generated~ts" } });
assert.equal(shown.data?.behavior, "noop", JSON.stringify(shown.error));
const missed = await getTasksId({ path: { id: "generated~missed" } });
assert.equal(missed.error?.type, "urn:taskledger:problem:not-found", JSON.stringify(missed.data));
const told = await getReplay({ query: { kind: ["Created"] } });
assert.match(await (told.data as Blob).text(), /"generated\/ts"/);
