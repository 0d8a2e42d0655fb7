/** Outputs over several attempts: a job shows those of the attempt that counts, and whoever saw others is told. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { WebSocket } from 'ws'
import { pictureGraph, startFleetApp } from '../../support/app/fleet-app.ts'
import { spawnServer } from '../../support/app/spawn-server.ts'
import { call } from '../../support/clients/call.ts'
import { CheckedClient, checkFrame, node, type WireJob } from '../../support/clients/checked-client.ts'
import { type Frame, openEvents } from '../../support/clients/event-reader.ts'
import { isText, openSocket } from '../../support/clients/test-socket.ts'
import { shortBounds } from '../../support/engines/comfy-test-bounds.ts'
import { startFakeComfy } from '../../support/engines/fake-comfyui/fake-comfyui.ts'

/** A picture, and a file whose bytes are those of its attempt, as a picture's are that carries its graph. */
const GRAPH = { ...pictureGraph(0x224466), '4': node('DemoStamp', { filename_prefix: 'stamp' }) }

function idsOf({ outputs }: WireJob): string[] {
  return outputs.map(({ id }) => id)
}

function idOf({ outputs }: WireJob, nodeId: string): string | undefined {
  return outputs.find(({ node_id }) => node_id === nodeId)?.id
}

function outputIds(frames: readonly Frame[]): string[] {
  return frames.filter(({ event }) => event === 'output').map(({ data }) => data.id)
}

async function stampOf(client: CheckedClient, job: WireJob): Promise<string> {
  const stamp = job.outputs.find(({ node_id }) => node_id === '4')
  return (await client.call(`/api/v2/assets/${stamp?.id}/content`)).text
}

describe('outputs of a job that was run again', () => {
  test('after a killed server they are those of the new attempt, on every surface, and the stream says so', async () => {
    await using app = await startFleetApp({ servers: [{}, {}], bounds: shortBounds('refusedMs') })
    const [dying, other] = app.fakes
    const { fleet } = app.service.app
    const client = new CheckedClient(app.url)
    fleet.cordon('gpu2')
    dying.hold('finishing')
    other.hold('running')
    const socket = await openSocket(new WebSocket(`${app.url.replace('http', 'ws')}/ws?clientId=watcher`))
    const { id } = await client.accepted(GRAPH)
    using reader = openEvents(app.url, `/api/v2/jobs/${id}/events`)
    const watching = reader.rest()
    const before = await client.until(id, ({ outputs }) => outputs.length === 2)
    assert.equal(before.outputs_replaced, 0)

    await dying[Symbol.asyncDispose]()
    fleet.resume('gpu2')
    await other.held('running')
    const between = await client.job(id)
    assert.deepEqual([between.status, between.outputs, between.outputs_replaced], ['running', [], 2])
    using late = openEvents(app.url, `/api/v2/jobs/${id}/events`)
    const lateWatching = late.rest()
    other.release('running')

    const job = await client.untilStatus(id, 'succeeded')
    assert.deepEqual(job.outputs.map(({ node_id }) => node_id).toSorted(), ['2', '4'])
    assert.equal(job.outputs_replaced, 2)
    assert.match(await stampOf(client, job), new RegExp(`${id}-2-[0-9a-f]{8}/`))
    assert.equal(idOf(job, '2'), idOf(before, '2'), 'the same bytes keep their id')
    assert.notEqual(idOf(job, '4'), idOf(before, '4'))

    const frames = await watching
    for (const frame of frames) checkFrame(frame)
    const resetAt = frames.findIndex(({ event }) => event === 'outputs_reset')
    assert.deepEqual(frames[resetAt]?.data, { outputs_replaced: 2 })
    assert.deepEqual(outputIds(frames.slice(0, resetAt)), idsOf(before))
    assert.deepEqual(outputIds(frames.slice(resetAt)), idsOf(job))
    assert.deepEqual(frames.at(-1)?.data.outputs, job.outputs)
    const lateFrames = await lateWatching
    assert.equal(lateFrames.filter(({ event }) => event === 'outputs_reset').length, 1, 'its reader may have seen them')
    assert.deepEqual(outputIds(lateFrames), idsOf(job))

    for (const old of before.outputs) {
      const { status, bytes } = await call(app.url, new URL(old.url).pathname)
      assert.deepEqual([status, bytes.length], [200, old.size_bytes], 'an address that was given keeps its promise')
    }
    const history = (await call(app.url, `/api/history/${id}`)).json[id]
    assert.deepEqual(Object.keys(history.outputs).toSorted(), ['2', '4'])
    assert.equal(history.outputs['4'].files.length, 1)
    for (const { filename } of [...history.outputs['2'].images, ...history.outputs['4'].files]) {
      const view = await call(app.url, `/view?${new URLSearchParams({ filename, type: 'output' })}`)
      assert.equal(view.status, 200, `${filename} can be read by the name that the history tells`)
    }
    const assets = (await call(app.url, `/api/jobs/${id}/assets`)).json
    assert.deepEqual(assets.assets.map((asset: { id: string }) => asset.id).toSorted(), idsOf(job).toSorted())
    await socket.until((frame) => isText(frame, 'execution_success'))
    const told = socket.frames.flatMap((frame) => ('type' in frame ? [frame.type] : []))
    const [first, second] = [told.indexOf('execution_start'), told.lastIndexOf('execution_start')]
    assert.ok(
      first < second && told.slice(first, second).includes('notification'),
      'the socket is told of the new start',
    )
    await socket.close()
  })

  test('after a killed service they are the ones that were there: the run went on without it', async () => {
    await using opened = new AsyncDisposableStack()
    const dataDir = await mkdtemp(join(tmpdir(), 'atelier-fleet-outputs-'))
    opened.defer(() => rm(dataDir, { recursive: true, force: true }))
    const fake = opened.use(await startFakeComfy())
    const flags = ['--data-dir', dataDir, '--comfyui', fake.url.href]
    const killed = opened.use(await spawnServer(flags))
    fake.hold('finishing')
    const first = new CheckedClient(killed.url)
    const { id } = await first.accepted(GRAPH)
    const before = await first.until(id, ({ outputs }) => outputs.length === 2)
    await killed.killNow()
    const client = new CheckedClient(opened.use(await spawnServer(flags)).url)
    fake.release('finishing')
    const job = await client.untilStatus(id, 'succeeded')
    assert.deepEqual(idsOf(job), idsOf(before))
    assert.equal(job.outputs_replaced, 0)
    assert.match(await stampOf(client, job), new RegExp(`${id}-1-[0-9a-f]{8}/`))
    const frames = await client.events(id)
    assert.equal(frames.filter(({ event }) => event === 'outputs_reset').length, 0)
    assert.deepEqual(outputIds(frames), idsOf(job))
    assert.equal(fake.executions.length, 1)
  })

  test('a canceled job keeps what its attempt had made', async () => {
    await using app = await startFleetApp({ servers: [{}], cancelGraceMs: 500 })
    app.fakes[0].hold('finishing')
    const client = new CheckedClient(app.url)
    const { id } = await client.accepted(GRAPH)
    const before = await client.until(id, ({ outputs }) => outputs.length === 2)
    app.fakes[0].faults.ignoreInterrupt = true
    await client.call(`/api/v2/jobs/${id}/cancel`, { method: 'POST' })
    const job = await client.untilStatus(id, 'canceled')
    assert.deepEqual(idsOf(job), idsOf(before))
    assert.equal(job.outputs_replaced, 0)
  })
})
