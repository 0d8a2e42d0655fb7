/** The error of a failed node reveals nothing about the service's own files or code. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { CheckedClient, node, type Workflow } from '../../support/clients/checked-client.ts'
import { LegacyClient } from '../../support/clients/legacy-client.ts'

const OWN_FOLDER = fileURLToPath(new URL('../../../', import.meta.url))
const INSIDES = /\.ts\b|\.js\b|\.mjs\b|node_modules|node:|file:\/\/|\bat .+:\d+:\d+/

/** Graphs whose fault shows only when they run, each in another part of the engine. */
const GRAPHS: Readonly<Record<string, Workflow>> = {
  'a name that leaves the folder': {
    '1': node('EmptyImage', { width: 8, height: 8, batch_size: 1, color: 1 }),
    '2': node('SaveImage', { images: ['1', 0], filename_prefix: '../../outside' }),
  },
  'a picture that is none': {
    '1': node('LoadImage', { image: 'broken.png' }),
    '2': node('PreviewImage', { images: ['1', 0] }),
  },
}

describe('a failed node', () => {
  let app: TestApp
  before(async () => {
    app = await startTestApp()
    await new CheckedClient(app.url).upload('broken.png', 'this is no picture')
  })
  after(() => app[Symbol.asyncDispose]())

  for (const [name, graph] of Object.entries(GRAPHS)) {
    test(`${name}: says what was wrong, and nothing of our files`, async () => {
      const client = new CheckedClient(app.url)
      const job = await client.run(graph)
      assert.equal(job.status, 'failed')
      assert.match(job.error?.traceback ?? '', /^[\w.]+: ./m)
      const log = (await client.call(`/api/v2/jobs/${job.id}/logs`)).text
      const legacy = await new LegacyClient(app.url).get(`/history/${job.id}`)
      for (const told of [JSON.stringify(job.error), log, JSON.stringify(legacy.json[job.id].status)]) {
        assert.doesNotMatch(told, INSIDES)
        assert.ok(!told.includes(OWN_FOLDER), told)
      }
    })
  }
})
