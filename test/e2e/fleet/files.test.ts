/** Which files stay on the servers of a fleet, and which reported items are not files although they have a name. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { silentLog } from '../../../lib/log.ts'
import { createRemover, foldersOf } from '../../../src/adapters/engines/comfyui/files/output-cleanup.ts'
import { type FleetApp, pictureGraph, startFleetApp } from '../../support/app/fleet-app.ts'
import { call } from '../../support/clients/call.ts'
import { toPng } from '../../support/engines/fake-comfyui/picture.ts'
import { waitUntil } from '../../support/wait-until.ts'

function bytesOn(app: FleetApp, folder: string): number[] {
  const [fake] = app.fakes
  const paths = fake?.files.paths().filter((path) => path.startsWith(`${folder}/atelier/`)) ?? []
  return paths.map((path) => fake?.files.get(path)?.length ?? 0)
}

function reportGraph(output: object): Record<string, object> {
  return { '1': { class_type: 'DemoReport', inputs: { output: JSON.stringify(output) } } }
}

describe('files on the servers of a fleet', () => {
  test('what a run saved is emptied once it is ours, and what it did not save stays', async () => {
    await using app = await startFleetApp({ servers: [{}], bounds: { removeAfterMs: 20 } })
    const [fake] = app.fakes
    fake?.files.put('output/mine.png', Buffer.from('mine'))
    const jobs = await Promise.all(
      [1, 2, 3].map(async (color) => app.until(await app.submit(pictureGraph(color)), 'succeeded')),
    )
    await waitUntil(() => bytesOn(app, 'output').length === 3 && bytesOn(app, 'output').every((size) => size === 0))
    assert.equal(fake?.files.get('output/mine.png')?.toString(), 'mine')
    for (const job of jobs) {
      const { pathname, search } = new URL(job.outputs[0].url)
      assert.equal((await call(app.url, pathname + search)).bytes.length, job.outputs[0].size_bytes)
    }
  })

  test('jobs of the same graph have outputs of their own, and folders of their own on their server', async () => {
    await using app = await startFleetApp({ servers: [{}] })
    const jobs = []
    for (let index = 0; index < 3; index++) jobs.push(await app.until(await app.submit(pictureGraph(7)), 'succeeded'))
    assert.equal(bytesOn(app, 'output').length, 3)
    assert.deepEqual(
      jobs.map((job) => job.outputs_reused),
      [false, true, true],
    )
    const outputs = jobs.map((job) => job.outputs[0])
    for (const key of ['id', 'name'] as const) assert.equal(new Set(outputs.map((output) => output[key])).size, 3)
    for (const { url, size_bytes } of outputs) {
      const { pathname, search } = new URL(url)
      assert.equal((await call(app.url, pathname + search)).bytes.length, size_bytes)
    }
  })

  test('only so many inputs are kept there; one that went is brought again', async () => {
    await using app = await startFleetApp({ servers: [{}], bounds: { maxStagedFiles: 2 } })
    const run = async (color: number) => {
      const form = new FormData()
      form.append('image', new Blob([toPng({ width: 2, height: 2, color })]), `${color}.png`)
      await fetch(`${app.url}/api/upload/image`, { method: 'POST', body: form })
      const graph = {
        '1': { class_type: 'LoadImage', inputs: { image: `${color}.png` } },
        '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'x' } },
      }
      await app.until(await app.submit(graph), 'succeeded')
    }
    for (const color of [1, 2, 3, 4]) await run(color)
    await waitUntil(() => bytesOn(app, 'input').filter((size) => size > 0).length === 2)
    await run(1)
    await waitUntil(() => bytesOn(app, 'input').filter((size) => size > 0).length === 2)
  })

  test('the folders of a launched server are found from its command line, and an attempt leaves them whole', async () => {
    assert.deepEqual(foldersOf(['main.py', '--port', '1'], '/srv/comfy'), {
      output: '/srv/comfy/output',
      input: '/srv/comfy/input',
    })
    assert.deepEqual(foldersOf(['/opt/c/main.py', '--base-directory=/data', '--output-directory', 'out'], '/run'), {
      output: '/run/out',
      input: '/data/input',
    })
    assert.equal(foldersOf([], '/run'), null)
    const base = await mkdtemp(join(tmpdir(), 'atelier-files-'))
    try {
      await mkdir(join(base, 'output/atelier/job-1/sub'), { recursive: true })
      await writeFile(join(base, 'output/atelier/job-1/sub/a.png'), 'a')
      await writeFile(join(base, 'output/other.png'), 'b')
      const emptied: string[] = []
      const remover = createRemover({
        api: {
          systemStats: async () => ({ system: { argv: ['main.py', '--base-directory', base] } }),
          deleteAsset: async () => {},
          emptyFile: async ({ filename }) => emptied.push(filename) > 0,
        },
        log: silentLog,
        startedIn: base,
      })
      const file = { filename: 'a.png', subfolder: 'atelier/job-1/sub', folder: 'output' } as const
      await remover.removeFolder('atelier/job-1', [file])
      assert.deepEqual((await readdir(join(base, 'output'), { recursive: true })).sort(), ['atelier', 'other.png'])
      // What does not lie where it should is asked for over HTTP.
      await remover.removeFolder('atelier/job-2', [{ ...file, subfolder: 'atelier/job-2', filename: 'b.png' }])
      assert.deepEqual(emptied, ['b.png'])
    } finally {
      await rm(base, { recursive: true })
    }
  })

  test('an item that only looks like a file is kept as a value', async () => {
    await using app = await startFleetApp({ servers: [{}] })
    const output = {
      stats: [{ filename: 'table.csv', rows: 3 }],
      choice: [{ filename: 'a', type: 'checkpoint' }],
      numbers: [1, null],
    }
    const job = await app.until(await app.submit(reportGraph(output)), 'succeeded')
    assert.equal(job.outputs.length, 4)
    const { pathname, search } = new URL(job.outputs[0].url)
    assert.deepEqual((await call(app.url, pathname + search)).json, { filename: 'table.csv', rows: 3 })
  })

  test('a file that its node only claims to have saved does not fail the job', async () => {
    await using app = await startFleetApp({ servers: [{}] })
    const output = { images: [{ filename: 'gone.png', subfolder: '', type: 'output' }] }
    const job = await app.until(await app.submit(reportGraph(output)), 'succeeded')
    assert.deepEqual(
      job.outputs.map(({ type }: { type: string }) => type),
      ['text'],
    )
  })
})
