/**
 * Data folders that earlier releases left behind, each killed in the middle of a run: this version opens them, has everything that was
 * acknowledged, and brings that run to its end. What is in them: docs/upgrading.md.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { globSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startTestApp } from '../../../support/app/start-app.ts'
import { call } from '../../../support/clients/call.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const FOLDERS = fileURLToPath(new URL('../../../fixtures/data-folders', import.meta.url))
const RELEASES = globSync('*.tar.gz', { cwd: FOLDERS }).sort()
const UPLOAD = 'blake3:e230e44fa7b07b0868f600dbf570d0799bbc33afce2e5276723f76565bd90f8a'
const CARD = 'blake3:f09812de3733e8e081f00294e443d2c7e049c1c609382f02802cdc9f838549b6'

interface KeptJob {
  readonly status: string
  readonly metadata: { readonly name: string }
  readonly outputs: readonly {
    readonly name: string
    readonly hash: string
    readonly url: string
    readonly size_bytes: number
  }[]
}

test('there is a folder of each release before this one', () => {
  assert.deepEqual(RELEASES, ['0.1.0.tar.gz', '0.2.0.tar.gz'])
})

for (const release of RELEASES) {
  test(`${path.basename(release, '.tar.gz')}: its jobs and files are there, its run ends, and a second start changes nothing`, async () => {
    const dataDir = mkdtempSync(path.join(tmpdir(), 'atelier-earlier-'))
    execFileSync('tar', ['-xzf', path.join(FOLDERS, release), '-C', dataDir])
    const first = await startTestApp({ dataDir })
    const before = await readFolder(first.url).catch(async (error: unknown) => {
      await first[Symbol.asyncDispose]()
      throw error
    })
    await using second = await first.restart()
    assert.deepEqual(await readFolder(second.url), before)
  })
}

/** Everything that was acknowledged, with the bytes of each output. */
async function readFolder(url: string) {
  const list = async (): Promise<readonly KeptJob[]> => (await call(url, '/api/v2/jobs')).json.jobs
  await waitUntil(async () => (await list()).every(({ status }) => status === 'succeeded'))
  const jobs = await list()
  assert.deepEqual(
    jobs.map(({ metadata, outputs }) => [metadata.name, outputs.map(({ name }) => name)]),
    [
      ['unfinished', ['unfinished_00001_.png']],
      ['card', ['colour-card_00001_.png']],
      ['greeting', ['4_text_1.txt']],
    ],
  )
  const card = jobs[1].outputs[0]
  assert.equal(card.hash, CARD)
  const files: string[] = []
  for (const { outputs } of jobs) {
    const bytes = Buffer.from(await (await fetch(outputs[0].url)).arrayBuffer())
    assert.equal(bytes.length, outputs[0].size_bytes)
    files.push(bytes.toString('base64'))
  }
  const body = JSON.stringify({ hash: UPLOAD, file_path: 'notes/up.txt' })
  const asset = await call(url, '/api/v2/assets/from-hash', { method: 'POST', body })
  assert.equal((await call(url, `/api/v2/assets/${asset.json.id}/content`)).text, 'an upload')
  return files
}
