/**
 * Processes as people run them: NATS wants a token and TLS, the bucket wants signed requests of a session that passes, and the keys come
 * from the role of the process. Both are lost and renewed while jobs run.
 */
import assert from 'node:assert/strict'
import { mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { findNatsProgram, startNats } from '../../support/bus/nats-server.ts'
import { call } from '../../support/clients/call.ts'
import { CheckedClient } from '../../support/clients/checked-client.ts'
import { openEvents } from '../../support/clients/event-reader.ts'
import { openRoleProcesses, submitJob, untilStatus } from '../../support/cluster/role-processes.ts'
import { startFakeS3 } from '../../support/s3/fake-s3.ts'
import { ROLE, startKeyGivers } from '../../support/s3/key-givers.ts'
import { waitUntil } from '../../support/wait-until.ts'

const found = findNatsProgram()
const program = 'program' in found ? found.program : ''
const skip = 'missing' in found ? found.missing : false
const HOUR_MS = 3_600_000

/** A graph that shows a preview before it saves. */
const graphOf = (seed: number) => ({
  '1': { class_type: 'EmptyImage', inputs: { width: 64, height: 64, batch_size: 1, color: seed } },
  '2': { class_type: 'PreviewImage', inputs: { images: ['1', 0] } },
  '3': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: `job-${seed}` } },
})

test('jobs run on through a NATS server with token and TLS, and a bucket whose keys pass', { skip }, async () => {
  await using nats = await startNats(program)
  await using fake = await startFakeS3()
  await using givers = await startKeyGivers(() => fake.issue(new Date(Date.now() + fake.skewMs + HOUR_MS)))
  using folder = mkdtempDisposableSync(join(tmpdir(), 'atelier-access-'))
  const token = join(folder.path, 'token')
  writeFileSync(token, givers.secret)
  await using processes = await openRoleProcesses(['--blobs', fake.blobsUrl], {
    ...{ ATELIER_BUS: nats.url, HOME: folder.path },
    ...{ AWS_ROLE_ARN: ROLE, AWS_WEB_IDENTITY_TOKEN_FILE: token, AWS_ENDPOINT_URL_STS: givers.url },
  })
  const here = await processes.api()
  await processes.worker()

  async function runOne(seed: number): Promise<void> {
    await new CheckedClient(here.url).uploaded(`in-${seed}.png`, `bytes of ${seed}`)
    const id = await submitJob(here, graphOf(seed))
    using events = openEvents(here.url, `/api/v2/jobs/${id}/events`, { Accept: 'text/event-stream' })
    const { outputs } = await untilStatus(here, id, 'succeeded')
    assert.ok((await events.rest()).length > 0)
    const { headers } = await call(here.url, `/api/v2/assets/${outputs.at(-1).id}/content`)
    const direct = await fetch(String(headers.location))
    assert.deepEqual([direct.status, direct.headers.get('content-type')], [200, 'image/png'])
  }
  const isHearing = async () => {
    const { text } = await call(here.url, '/readyz')
    return !text.includes('degraded')
  }

  await waitUntil(isHearing)
  await runOne(1)
  const asked = givers.asked.length
  assert.equal(asked, 2, 'each process has fetched keys once')
  await nats.kill()
  await waitUntil(async () => !(await isHearing()))
  fake.skewMs += 2 * HOUR_MS
  await runOne(2)
  await nats.start()
  await waitUntil(isHearing)
  await runOne(3)
  assert.equal(givers.asked.length, 2 * asked, 'and once more when those had passed')
})
