/** What nodes print on a server of a fleet, in the log of their job and of no other. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type FleetApp, startFleetApp } from '../../support/app/fleet-app.ts'
import { call } from '../../support/clients/call.ts'

/** Each text printed by a node of its own, one after the other. */
function printGraph(texts: readonly string[]): Record<string, object> {
  const nodes = texts.map((text, index) => [
    `p${index}`,
    { class_type: 'DemoPrint', inputs: { image: [index === 0 ? '0' : `p${index - 1}`, 0], text } },
  ])
  return {
    '0': { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 1 } },
    ...Object.fromEntries(nodes),
    '9': { class_type: 'SaveImage', inputs: { images: [`p${texts.length - 1}`, 0], filename_prefix: 'x' } },
  }
}

async function logOf(app: FleetApp, jobId: string): Promise<string> {
  await app.until(jobId, 'succeeded')
  const { json } = await call(app.url, `/api/v2/jobs/${jobId}/logs`)
  return json.text
}

describe('logs over a fleet', () => {
  for (const zoneMinutes of [0, 330, -480]) {
    test(`a server without a terminal, ${zoneMinutes} minutes ahead of UTC`, async () => {
      await using app = await startFleetApp({ servers: [{ faults: { quietOutput: true, zoneMinutes } }] })
      const [fake] = app.fakes
      assert.ok(fake)
      fake.print('of the start')
      const first = await logOf(
        app,
        await app.submit(printGraph(['one', '\u001b[32mgreen\u001b[0m and \u001b[1mbold'])),
      )
      assert.equal(first, 'one\ngreen and bold\n')
      fake.print('of a stranger, between two jobs')
      const second = await logOf(app, await app.submit(printGraph(['two', 'two'])))
      assert.equal(second, 'two\ntwo\n')
    })
  }

  test('lines of both ways come once and in order', async () => {
    await using app = await startFleetApp({ servers: [{}] })
    const [fake] = app.fakes
    assert.ok(fake)
    fake.hold('running')
    const jobId = await app.submit(printGraph(['last']))
    await fake.held('running')
    fake.print('flushed')
    fake.faults.quietOutput = true
    fake.print('kept back')
    fake.faults.quietOutput = false
    fake.print('flushed again')
    fake.release('running')
    assert.equal(await logOf(app, jobId), 'flushed\nkept back\nflushed again\nlast\n')
  })

  test('a server without a record is heard over its socket', async () => {
    await using app = await startFleetApp({ servers: [{ faults: { garbage: { '/internal/logs/raw': 1_000 } } }] })
    assert.equal(await logOf(app, await app.submit(printGraph(['\u001b[31mred\u001b[0m']))), 'red\n')
  })
})
