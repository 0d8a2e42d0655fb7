/** Several accounts at once, with random events in random order: no account ever gets a frame of another. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Frame, isText } from '../../../../../test/support/clients/test-socket.ts'
import type { JobMove } from '../../../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../../../domain/events/live-event.ts'
import { startSockets, toRef } from './start-sockets.ts'

const ACCOUNTS = ['ada', 'bob', 'eve']
const MOVES: readonly JobMove[] = ['queued', 'taken', 'returned', 'dropped', 'ended']

/** Every event names its account in what it carries. */
function eventsOf(account: string): readonly LiveEvent[] {
  const ref = toRef(`node of ${account}`)
  const bytes = Buffer.from(`picture of ${account}`)
  return [
    { type: 'started', nodesTotal: 1 },
    { type: 'cached', nodeIds: [`cached of ${account}`] },
    { type: 'node_started', ...ref },
    { type: 'node_progress', ...ref, value: 1, max: 2 },
    { type: 'preview', ...ref, contentType: 'image/png', bytes },
    { type: 'preview', ...ref, contentType: 'image/png', bytes, isResult: true },
    { type: 'node_text', ...ref, text: `text of ${account}` },
    {
      type: 'node_report',
      ...ref,
      cached: false,
      report: { text: [{ kind: 'value', value: `report of ${account}` }] },
    },
    { type: 'node_blocked', ...ref, message: `blocked of ${account}` },
    { type: 'node_finished', ...ref },
    { type: 'succeeded' },
    { type: 'interrupted' },
  ]
}

const happening = fc.record({
  account: fc.nat({ max: ACCOUNTS.length - 1 }),
  job: fc.nat({ max: 1 }),
  move: fc.option(fc.constantFrom(...MOVES), { freq: 3 }),
  event: fc.nat({ max: eventsOf('').length - 1 }),
})

const textOf = (frame: Frame) => ('binary' in frame ? frame.binary.toString('latin1') : JSON.stringify(frame))

test('no frame ever crosses from one account to another', async () => {
  await using rig = await startSockets()
  await fc.assert(
    fc.asyncProperty(fc.array(happening, { minLength: 1, maxLength: 40 }), async (script) => {
      const sockets = await Promise.all(
        ACCOUNTS.flatMap((account) => [0, 1].map(() => rig.connect(`token=${account}&clientId=same`))),
      )
      // Half of them in the other dialect.
      for (const [index, { ws }] of sockets.entries()) {
        if (index % 2 === 1) ws.send('{"type":"feature_flags","data":{"supports_preview_metadata":true}}')
      }
      for (const { account, job, move, event } of script) {
        const name = ACCOUNTS[account]
        if (move === null) rig.say(`${job} job of ${name}`, eventsOf(name)[event], name)
        else rig.move(`${job} job of ${name}`, move, name)
      }
      // The last word to each account; when it is there, so is everything before it.
      for (const name of ACCOUNTS) rig.say('last', { type: 'cached', nodeIds: [`end of ${name}`] }, name)
      for (const [index, socket] of sockets.entries()) {
        const name = ACCOUNTS[Math.floor(index / 2)]
        await socket.until((frame) => isText(frame, 'execution_cached') && frame.data['prompt_id'] === 'last')
        for (const frame of socket.frames) {
          for (const other of ACCOUNTS)
            if (other !== name) assert.ok(!textOf(frame).includes(`of ${other}`), textOf(frame))
        }
        socket.ws.terminate()
      }
    }),
    { numRuns: 40, seed: 23 },
  )
})
