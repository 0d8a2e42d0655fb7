/** Ending a run by its id, on servers old and new; and what an attempt finds of the ones before it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EngineLostError } from '../../../src/domain/engine/engine-lost-error.ts'
import { shortBounds } from '../../support/engines/comfy-test-bounds.ts'
import type { FakeFaults } from '../../support/engines/fake-comfyui/faults.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { ofType, openRig, type Rig, runGraph, saveGraph, stepsGraph, toRun } from './support/harness.ts'

const SERVERS: Readonly<Record<string, Partial<FakeFaults>>> = {
  'a server with a jobs API': {},
  'a server without one': { noJobsApi: true },
  'a server that interrupts whatever runs': { noJobsApi: true, blindInterrupt: true },
}

/** Somebody else's prompt, straight to the server. */
async function postStranger({ fake }: Rig): Promise<string> {
  const answer = await fetch(new URL('/prompt', fake.url), {
    method: 'POST',
    body: JSON.stringify({ prompt: stepsGraph(2, 5, 77), client_id: 'somebody else' }),
  })
  return ((await answer.json()) as { prompt_id: string }).prompt_id
}

async function untilStranger({ fake }: Rig, promptId: string): Promise<string> {
  await waitUntil(() => fake.queue().history.has(promptId))
  return fake.queue().history.get(promptId)?.status.status_str ?? ''
}

describe('stopping a run', { concurrency: 4 }, () => {
  for (const [server, faults] of Object.entries(SERVERS)) {
    test(`${server}: a running one is interrupted`, async () => {
      await using rig = await openRig({ faults })
      const stop = new AbortController()
      const { events } = await runGraph(rig.engine, stepsGraph(1_000, 10), {
        signal: stop.signal,
        onEvent: ({ type }) => (type === 'node_progress' ? stop.abort() : undefined),
      })
      assert.equal(events.at(-1)?.type, 'interrupted')
      assert.equal(ofType(events, 'started').length, 1)
    })

    test(`${server}: a waiting one is taken out of the queue, and what runs goes on`, async () => {
      await using rig = await openRig({ faults })
      rig.fake.hold('running')
      const stranger = await postStranger(rig)
      await rig.fake.held('running')
      const stop = new AbortController()
      const run = runGraph(rig.engine, saveGraph(1), {
        signal: stop.signal,
        onEvent: ({ type }) => (type === 'started' ? stop.abort() : undefined),
      })
      assert.equal((await run).events.at(-1)?.type, 'interrupted')
      rig.fake.release('running')
      assert.equal(await untilStranger(rig, stranger), 'success')
      assert.deepEqual(
        rig.fake.executions.map(({ promptId }) => promptId),
        [stranger],
      )
    })
  }

  test('a run that succeeds before the interrupt takes hold has succeeded', async () => {
    await using rig = await openRig()
    rig.fake.hold('finishing')
    const stop = new AbortController()
    const run = runGraph(rig.engine, saveGraph(2), { signal: stop.signal })
    await rig.fake.held('finishing')
    rig.fake.faults.ignoreInterrupt = true
    stop.abort()
    rig.fake.release('finishing')
    assert.equal((await run).events.at(-1)?.type, 'succeeded')
  })

  test('an engine that ignores interrupts is unfit', async () => {
    await using rig = await openRig({ faults: { ignoreInterrupt: true } }, shortBounds('stopGraceMs'))
    const stop = new AbortController()
    const run = runGraph(rig.engine, stepsGraph(10_000, 10), {
      signal: stop.signal,
      onEvent: ({ type }) => (type === 'node_started' ? stop.abort() : undefined),
    })
    await assert.rejects(
      run,
      (error) => error instanceof EngineLostError && error.code === 'engine_stuck' && error.isUnfit,
    )
  })

  test('a reader who leaves stops the run', async () => {
    await using rig = await openRig()
    for await (const event of rig.engine.run(toRun(stepsGraph(10_000, 5)), {
      signal: new AbortController().signal,
    })) {
      if (event.type === 'node_started') break
    }
    await waitUntil(() => rig.fake.queue().remaining() === 0)
    assert.equal(rig.fake.executions.length, 1)
  })

  test('a later attempt ends what an earlier one left on the server', async () => {
    await using rig = await openRig()
    rig.fake.hold('running')
    const leaving = new AbortController()
    const first = runGraph(rig.engine, stepsGraph(10_000, 5), { jobId: 'the job', attempt: 1, signal: leaving.signal })
    first.catch(() => {})
    await rig.fake.held('running')
    rig.fake.release('running')
    // As after a crash of the service: the first attempt is not followed any more, and its prompt is still on the server.
    const second = runGraph(rig.engine, saveGraph(3), { jobId: 'the job', attempt: 2 })
    assert.equal((await second).events.at(-1)?.type, 'succeeded')
    assert.equal((await first).events.at(-1)?.type, 'interrupted')
  })

  test('closing the engine stops its runs', async () => {
    await using rig = await openRig()
    const run = runGraph(rig.engine, stepsGraph(10_000, 5), {
      onEvent: ({ type }) => (type === 'node_started' ? void rig.engine[Symbol.asyncDispose]() : undefined),
    })
    assert.equal((await run).events.at(-1)?.type, 'interrupted')
  })

  test('closing the engine ends also a run that cannot be stopped', async () => {
    await using rig = await openRig({ faults: { ignoreInterrupt: true } })
    const closed = Promise.withResolvers<void>()
    const run = runGraph(rig.engine, stepsGraph(10_000, 5), {
      onEvent: ({ type }) =>
        type === 'node_started' ? closed.resolve(rig.engine[Symbol.asyncDispose]() as Promise<void>) : undefined,
    })
    await assert.rejects(run, (error) => error instanceof EngineLostError && error.code === 'engine_unreachable')
    await closed.promise
  })
})
