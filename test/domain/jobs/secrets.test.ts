import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'
import { ACCOUNT, GATED, openRig, SAVE } from './job-rig.ts'
import { jobTest } from './job-test.ts'

const SECRET = 'sk-very-secret-0123456789'
const EXTRA = { api_key_service_org: SECRET, extra_pnginfo: { workflow: { seed: 18_446_744_073_709_551_615n } } }

async function readEverything(directory: string): Promise<string> {
  const names = await readdir(directory, { recursive: true, withFileTypes: true })
  const files = names.filter((entry) => entry.isFile())
  const texts = await Promise.all(files.map((entry) => readFile(join(entry.parentPath, entry.name), 'latin1')))
  return texts.join('\n')
}

jobTest('extra data reaches the engine verbatim, is never on disk and is forgotten at the end', async (rig) => {
  const { id } = await rig.submit(SAVE, { extraData: EXTRA })
  assert.ok(!(await readEverything(rig.directory)).includes(SECRET))
  rig.worker.start()
  await rig.untilStatus(id, 'succeeded')
  assert.deepEqual(rig.engine.runs[0].extraData, EXTRA)
  assert.equal(rig.extraData.count(), 0)
  assert.ok(!(await readEverything(rig.directory)).includes(SECRET))
  assert.doesNotMatch(await rig.reader.workflow(ACCOUNT, id), /secret/)
})

jobTest('an empty extra data object is accepted and not forwarded', async (rig) => {
  rig.worker.start()
  await rig.untilStatus((await rig.submit(SAVE, { extraData: {} })).id, 'succeeded')
  assert.equal(rig.engine.runs[0].extraData, null)
})

jobTest('extra data is forgotten when a queued job is canceled or a submit is refused', async (rig) => {
  const { id } = await rig.submit(SAVE, { extraData: EXTRA, idempotencyKey: 'one' })
  await assert.rejects(rig.submit(SAVE, { extraData: EXTRA, idempotencyKey: 'one' }))
  assert.equal(rig.extraData.count(), 1)
  await rig.cancelJob(ACCOUNT, id)
  assert.equal(rig.extraData.count(), 0)
})

jobTest(
  'a later attempt in the same process still has its extra data',
  async (rig) => {
    rig.worker.start()
    const { id } = await rig.submit(GATED, { extraData: EXTRA })
    await rig.engine.untilRuns(2)
    rig.engine.faults.throwAfter = null
    rig.engine.openGate()
    await rig.untilStatus(id, 'succeeded')
    assert.deepEqual(rig.engine.runs.at(-1)?.extraData, EXTRA)
  },
  { engine: createFakeEngine({ throwAfter: 1 }), worker: { maxAttempts: 100 } },
)

for (const isSealed of [false, true]) {
  const what = isSealed
    ? 'sealed extra data survives a restart'
    : 'without a key a restart loses the credentials and the job never runs'
  test(what, async () => {
    const clock = createFixedClock()
    const secretKey = isSealed ? randomBytes(32) : undefined
    const dead = await openRig({ clock, secretKey })
    const { id } = await dead.submit(SAVE, { extraData: EXTRA })
    assert.equal(dead.extraData.count(), isSealed ? 0 : 1)
    assert.ok(!(await readEverything(dead.directory)).includes(SECRET))
    await dead.crash()

    const rig = await openRig({ clock, secretKey, directory: dead.directory })
    try {
      rig.worker.start()
      const job = await rig.until(id, ({ completedAt }) => completedAt !== null)
      if (isSealed) {
        assert.equal(job.status, 'succeeded')
        assert.deepEqual(rig.engine.runs[0].extraData, EXTRA)
        assert.equal(rig.extraData.count(), 0)
      } else {
        assert.deepEqual([job.status, job.error?.code], ['failed', 'credentials_lost'])
        assert.equal(rig.engine.runs.length, 0)
      }
    } finally {
      await rig.close()
    }
  })
}

test('a job sealed under another key ends as credentials_lost', async () => {
  const dead = await openRig({ secretKey: randomBytes(32) })
  const { id } = await dead.submit(SAVE, { extraData: EXTRA })
  await dead.crash()
  const rig = await openRig({ secretKey: randomBytes(32), directory: dead.directory })
  try {
    rig.worker.start()
    assert.equal((await rig.untilStatus(id, 'failed')).error?.code, 'credentials_lost')
    assert.equal(rig.engine.runs.length, 0)
  } finally {
    await rig.close()
  }
})
