/** The graph inside the files of a fleet is the caller's, whatever was rewritten for the server. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type FleetApp, startFleetApp } from '../../support/app/fleet-app.ts'
import { call } from '../../support/clients/call.ts'
import { shortBounds } from '../../support/engines/comfy-test-bounds.ts'
import { toPng } from '../../support/engines/fake-comfyui/picture.ts'

const RED = toPng({ width: 4, height: 4, color: 0xff0000 })

function signedGraph(
  images: readonly string[],
  prefix: string,
): Record<string, { class_type: string; inputs: object }> {
  const loads = images.map((image, index) => [`l${index}`, { class_type: 'LoadImage', inputs: { image } }] as const)
  return {
    ...Object.fromEntries(loads),
    '9': { class_type: 'DemoSigned', inputs: { image: ['l0', 0], filename_prefix: prefix } },
  }
}

async function upload(app: FleetApp, name: string): Promise<void> {
  const form = new FormData()
  form.append('image', new Blob([RED], { type: 'image/png' }), name)
  const answer = await fetch(`${app.url}/api/upload/image`, { method: 'POST', body: form })
  assert.equal(answer.status, 200)
}

/** Of the picture and of the sound that the job saved. */
async function graphsOf(app: FleetApp, jobId: string): Promise<{ picture: Buffer; sound: string }> {
  const job = await app.until(jobId, 'succeeded')
  const read = async (ending: string) => {
    const output = job.outputs.find(({ name }: { name: string }) => name.endsWith(ending))
    const { pathname, search } = new URL(output.url)
    return (await call(app.url, pathname + search)).bytes
  }
  const sound = (await read('.flac')).toString('latin1')
  return { picture: await read('.png'), sound: sound.slice(sound.indexOf('{'), sound.lastIndexOf('}') + 1) }
}

describe('the graph in the files of a fleet', () => {
  test('has the names and prefixes that the caller wrote, also two names of one content', async () => {
    await using app = await startFleetApp({ servers: [{}] })
    await upload(app, 'one.png')
    await upload(app, 'another name.png')
    const graph = signedGraph(['one.png', 'another name.png'], 'shots/day %1')
    const jobId = await app.submit(graph)
    const { picture, sound } = await graphsOf(app, jobId)
    assert.deepEqual(JSON.parse(sound), graph)
    assert.equal(picture.equals(toPng({ width: 8, height: 8, color: 0 }, JSON.stringify(graph))), true)
  })

  test('is the same whichever attempt made it', async () => {
    await using app = await startFleetApp({ servers: [{}], bounds: shortBounds('vanishedMs') })
    await upload(app, 'one.png')
    const graph = signedGraph(['one.png'], 'x')
    const [fake] = app.fakes
    assert.ok(fake)
    fake.hold('running')
    const jobId = await app.submit(graph)
    await fake.held('running')
    await fake.restart()
    fake.release('running')
    const { picture, sound } = await graphsOf(app, jobId)
    const job = await app.until(jobId, 'succeeded')
    assert.equal(fake.executions.length >= 1, true)
    assert.deepEqual(JSON.parse(sound), graph, JSON.stringify(job))
    assert.equal(picture.equals(toPng({ width: 8, height: 8, color: 0 }, JSON.stringify(graph))), true)
  })
})
