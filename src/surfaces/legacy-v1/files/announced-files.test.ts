import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventBus, JobLive } from '../../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../../domain/events/live-event.ts'
import { AnnouncedFiles } from './announced-files.ts'

const FILE = { accountId: 'a', folder: 'output', name: 'x.png' }

/** A run that has announced one file. */
function openRun() {
  let hear = (_: JobLive<LiveEvent>) => {}
  let change = (_: { readonly jobId: string }) => {}
  const bus = {
    hasOthers: false,
    onLive: (_: unknown, listener: typeof hear) => {
      hear = listener
      return () => {}
    },
    onChanged: (listener: typeof change) => {
      change = listener
      return () => {}
    },
  } as unknown as Pick<EventBus<LiveEvent>, 'onLive' | 'onChanged' | 'hasOthers'>
  const files = new AnnouncedFiles({ bus, countJobs: async () => null })
  const tell = (event: unknown) => hear({ jobId: 'j', accountId: 'a', event } as JobLive<LiveEvent>)
  tell({ type: 'node_report', report: { images: [{ kind: 'file', folder: 'output', filename: 'x.png' }] } })
  return { files, changed: () => change({ jobId: 'j' }), ended: () => tell({ type: 'succeeded' }) }
}

for (const [what, when] of [
  ['is stored', 'changed'],
  ['ends', 'ended'],
] as const) {
  test(`a file is found although its run ${what} while it is looked for`, async () => {
    const run = openRun()
    using files = run.files
    let looks = 0
    const found = await files.find(FILE, async () => {
      looks += 1
      if (looks > 1) return 'the file'
      // What is read now was written before.
      run[when]()
      return null
    })
    assert.deepEqual([found, looks], ['the file', 2])
  })
}

test('a file that nobody announced is looked for once', async () => {
  using files = openRun().files
  let looks = 0
  const look = async () => {
    looks += 1
    return null
  }
  assert.equal(await files.find({ ...FILE, name: 'y.png' }, look), null)
  assert.equal(looks, 1)
})
