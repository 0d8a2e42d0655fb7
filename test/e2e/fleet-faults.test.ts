/**
 * Faults of the field through the whole service. The first of two servers has the fault; the job ends as the table says, and no
 * attempt is ever executed twice. Each switch at each point of a run's life is tried on the adapter alone, which is quicker;
 * here stand those points at which the service itself does something.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { call } from '../support/call.ts'
import type { Phase } from '../support/fake-comfyui/executor.ts'
import type { FakeComfy } from '../support/fake-comfyui/fake-comfyui.ts'
import type { FakeFaults } from '../support/fake-comfyui/faults.ts'
import { type FleetApp, pictureGraph, startFleetApp } from '../support/fleet-app.ts'

interface Case {
  readonly fault: string
  readonly strike: (fake: FakeComfy) => void | Promise<void>
  /** Faults of the submit are there before it; the others strike when the run stands at its point. */
  readonly isBefore?: true
  readonly phases?: readonly Phase[]
  /** `moved`: it succeeds on the other server. */
  readonly ending: 'succeeded' | 'moved' | `failed:${string}`
}

const PHASES: readonly Phase[] = ['queued', 'running', 'finishing']
const ALWAYS = Number.POSITIVE_INFINITY
const set =
  (faults: Partial<FakeFaults>) =>
  (fake: FakeComfy): void =>
    void Object.assign(fake.faults, faults)

const CASES: readonly Case[] = [
  { fault: 'a silent socket', strike: set({ silentSocket: true }), ending: 'succeeded' },
  { fault: 'a cut socket', strike: (fake) => fake.cutSockets(), phases: ['running'], ending: 'succeeded' },
  {
    fault: 'a lost reply',
    isBefore: true,
    strike: set({ dropPromptReply: 1 }),
    phases: ['queued'],
    ending: 'succeeded',
  },
  { fault: 'a lost submit', isBefore: true, strike: set({ dropPrompt: ALWAYS }), phases: ['queued'], ending: 'moved' },
  { fault: 'a busy server', isBefore: true, strike: set({ busyPrompt: ALWAYS }), phases: ['queued'], ending: 'moved' },
  { fault: 'a killed server', strike: (fake) => fake[Symbol.asyncDispose](), ending: 'moved' },
  { fault: 'a restarted server', strike: (fake) => fake.restart({ downMs: 50 }), ending: 'moved' },
  {
    fault: 'a muted server',
    strike: set({ mute: { '/history': ALWAYS, '/queue': ALWAYS, '/system_stats': ALWAYS }, silentSocket: true }),
    phases: ['running'],
    ending: 'moved',
  },
  { fault: 'no memory, once', strike: set({ outOfMemory: 1 }), phases: ['queued'], ending: 'succeeded' },
  { fault: 'a faulty graphics card', strike: set({ cudaFault: true }), phases: ['queued'], ending: 'moved' },
  { fault: 'a node that hangs', strike: set({ hang: true }), phases: ['queued'], ending: 'failed:stalled' },
  { fault: 'an evicted history', strike: set({ evictHistory: true }), phases: ['running'], ending: 'succeeded' },
  { fault: 'a late history', strike: set({ historyLagMs: 120 }), phases: ['finishing'], ending: 'succeeded' },
  { fault: 'a file that fails once', strike: set({ viewError: 1 }), phases: ['finishing'], ending: 'succeeded' },
  { fault: 'a file that never comes', strike: set({ viewError: ALWAYS }), ending: 'moved' },
  { fault: 'a file that is cut', strike: set({ viewTruncated: 1 }), phases: ['running'], ending: 'succeeded' },
  { fault: 'one byte per second', strike: set({ viewBytesPerSecond: 1 }), phases: ['running'], ending: 'moved' },
  { fault: 'equal names', strike: set({ duplicateNames: true }), phases: ['running'], ending: 'succeeded' },
  { fault: 'strange frames', strike: set({ strangersFrames: true }), phases: ['running'], ending: 'succeeded' },
]

let color = 0

async function runCase(app: FleetApp, { strike, isBefore, ending }: Case, phase: Phase): Promise<void> {
  const [faulty, sound] = app.fakes
  // The job begins on the faulty server: the other one may join only then.
  app.service.app.fleet.cordon('gpu2')
  if (isBefore) await strike(faulty)
  else faulty.hold(phase)
  const id = await app.submit(pictureGraph(++color))
  if (!isBefore) {
    await faulty.held(phase)
    await strike(faulty)
  }
  app.service.app.fleet.resume('gpu2')
  if (!isBefore) faulty.release(phase)
  const status = ending.startsWith('failed:') ? 'failed' : 'succeeded'
  const job = await app.until(id, status)
  if (status === 'failed') assert.equal(job.error.code, ending.slice('failed:'.length))
  else await checkOutput(app, job)
  if (ending === 'moved') assert.equal(sound.executions.length, 1, 'the other server ran it')
  const prompts = app.fakes.flatMap(({ executions }) => executions.map(({ promptId }) => promptId))
  assert.equal(new Set(prompts).size, prompts.length, 'no attempt was executed twice')
}

// biome-ignore lint/suspicious/noExplicitAny: a job as the API shows it
async function checkOutput(app: FleetApp, job: any): Promise<void> {
  assert.equal(job.outputs.length, 1)
  const content = await call(app.url, new URL(job.outputs[0].url).pathname)
  assert.equal(content.status, 200)
  assert.equal(content.bytes.length, job.outputs[0].size_bytes)
}

describe('the fault matrix through the service', { timeout: 120_000, concurrency: 4 }, () => {
  for (const each of CASES) {
    for (const phase of each.phases ?? PHASES) {
      test(`${each.fault}, ${phase}: ${each.ending}`, async () => {
        await using app = await startFleetApp({ servers: [{}, {}] })
        await runCase(app, each, phase)
      })
    }
  }
})
