/**
 * Every fault of the field, at each point of a run's life: queued, running, finishing. The run ends as the table says, by the
 * bounds that it names, and the server has executed what the table says, never more.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EngineLostError } from '../../../src/domain/engine/engine-lost-error.ts'
import { type ShortBound, shortBounds } from '../../support/engines/comfy-test-bounds.ts'
import type { Phase } from '../../support/engines/fake-comfyui/executor.ts'
import type { FakeComfy } from '../../support/engines/fake-comfyui/fake-comfyui.ts'
import type { FakeFaults } from '../../support/engines/fake-comfyui/faults.ts'
import { toPng } from '../../support/engines/fake-comfyui/picture.ts'
import { type GraphJson, ofType, openRig, type RunResult, runGraph, saveGraph } from './support/harness.ts'

/** `lost:<code>`: the attempt is lost and another engine may try; `failed:<code>`: the job is at fault. */
type Ending = 'succeeded' | `failed:${string}` | `lost:${string}`

interface Case {
  readonly fault: string
  readonly faults?: Partial<FakeFaults>
  readonly act?: (fake: FakeComfy) => void | PromiseLike<void>
  /** Faults of the submit are there before it; others strike when the run stands at its point. */
  readonly when?: 'before'
  readonly graph?: GraphJson
  readonly files?: Readonly<Record<string, Uint8Array>>
  readonly ending: Ending | Readonly<Record<Phase, Ending>>
  /** How many prompts the server may have begun; 1 unless told. */
  readonly executions?: number | Readonly<Record<Phase, number>>
  readonly phases?: readonly Phase[]
  /** Held until the run is over. */
  readonly isKept?: boolean
  /** The bounds that the run waits for; no other one can end anything. */
  readonly endsBy?: readonly ShortBound[]
}

const COLOR = 0x336699
const PHASES: readonly Phase[] = ['queued', 'running', 'finishing']
const ALWAYS = Number.POSITIVE_INFINITY
const RESTARTED = {
  queued: 'lost:engine_restarted',
  running: 'lost:engine_restarted',
  finishing: 'lost:engine_restarted',
} as const
const NOT_TO_BEGIN = { queued: 0, running: 1, finishing: 1 }
const LATE_FAULT = ['queued', 'running'] as const
const loadGraph: GraphJson = {
  '1': { class_type: 'LoadImage', inputs: { image: 'photo.png' } },
  '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'x' } },
}
const files = { 'photo.png': Buffer.from('a photo') }

const CASES: readonly Case[] = [
  { fault: 'none', ending: 'succeeded' },
  // Socket: runs end well without it.
  {
    fault: 'a silent socket with a live ping',
    faults: { silentSocket: true },
    ending: 'succeeded',
  },
  {
    fault: 'a socket that is silent from the start',
    when: 'before',
    faults: { silentSocket: true },
    ending: 'succeeded',
  },
  { fault: 'a socket that is cut', act: (fake) => fake.cutSockets(), ending: 'succeeded' },
  {
    fault: 'a socket that is cut and refused',
    faults: { refuseSocket: true },
    act: (fake) => fake.cutSockets(),
    ending: 'succeeded',
  },
  {
    fault: 'a reconnect that is de-registered when the old connection unwinds',
    faults: { unwindSocketMs: 50 },
    act: (fake) => fake.cutSockets(),
    ending: 'succeeded',
  },
  { fault: 'frames of strangers', faults: { strangersFrames: true }, ending: 'succeeded' },
  // Submitting.
  {
    fault: 'a lost reply',
    when: 'before',
    faults: { dropPromptReply: 1 },
    ending: 'succeeded',
  },
  {
    fault: 'a lost submit',
    when: 'before',
    faults: { dropPrompt: ALWAYS },
    endsBy: ['vanishedMs'],
    ending: 'lost:engine_unreachable',
    executions: 0,
    phases: ['queued'],
  },
  {
    fault: 'a server that is busy twice',
    when: 'before',
    faults: { busyPrompt: 2 },
    ending: 'succeeded',
  },
  {
    fault: 'a server that stays busy',
    when: 'before',
    faults: { busyPrompt: ALWAYS },
    endsBy: ['unreachableMs'],
    ending: 'lost:engine_overloaded',
    executions: 0,
    phases: ['queued'],
  },
  {
    fault: 'nonsense in reply to the submit',
    when: 'before',
    faults: { garbage: { '/prompt': 1 } },
    endsBy: ['vanishedMs'],
    ending: 'lost:engine_overloaded',
    executions: 0,
    phases: ['queued'],
  },
  {
    fault: 'a server that gives its own ids',
    when: 'before',
    faults: { ignorePromptId: true },
    ending: 'succeeded',
  },
  {
    fault: 'a partial acceptance',
    when: 'before',
    faults: { partialAcceptance: true },
    ending: 'failed:invalid_workflow',
    isKept: true,
    executions: 0,
    phases: ['queued'],
  },
  // Running.
  {
    fault: 'a node that hangs',
    faults: { hang: true },
    endsBy: ['stallMs'],
    ending: 'failed:stalled',
    phases: LATE_FAULT,
  },
  {
    fault: 'a node that hangs and ignores interrupts',
    faults: { hang: true, ignoreInterrupt: true },
    endsBy: ['stallMs', 'stopGraceMs'],
    ending: 'lost:engine_stuck',
    phases: LATE_FAULT,
  },
  {
    fault: 'no memory',
    faults: { outOfMemory: 1 },
    ending: 'failed:out_of_memory',
    phases: LATE_FAULT,
  },
  {
    fault: 'a CUDA fault',
    faults: { cudaFault: true },
    ending: 'failed:cuda_fault',
    phases: LATE_FAULT,
  },
  {
    fault: 'a restart',
    act: (fake) => fake.restart(),
    endsBy: ['vanishedMs'],
    ending: RESTARTED,
    executions: NOT_TO_BEGIN,
  },
  {
    fault: 'a server that is killed',
    act: async (fake) => fake[Symbol.asyncDispose](),
    endsBy: ['refusedMs'],
    ending: 'lost:engine_unreachable',
    executions: NOT_TO_BEGIN,
  },
  // History and queue.
  {
    fault: 'a history that keeps nothing',
    faults: { evictHistory: true },
    endsBy: ['vanishedMs'],
    ending: 'succeeded',
  },
  {
    fault: 'a history that keeps nothing, and no word over the socket',
    faults: { evictHistory: true, silentSocket: true },
    when: 'before',
    endsBy: ['vanishedMs'],
    ending: RESTARTED,
  },
  { fault: 'a history that lags', faults: { historyLagMs: 100 }, ending: 'succeeded' },
  ...(['/history', '/queue'] as const).flatMap((path): Case[] => [
    {
      fault: `nonsense from ${path} now and then`,
      faults: { garbage: { [path]: 3 } },
      ending: 'succeeded',
    },
    {
      fault: `503 from ${path} now and then`,
      faults: { unavailable: { [path]: 3 } },
      ending: 'succeeded',
    },
    { fault: `no answer from ${path} once`, faults: { mute: { [path]: 1 } }, endsBy: ['callMs'], ending: 'succeeded' },
  ]),
  {
    fault: '503 from /history for good: the socket has told everything',
    faults: { unavailable: { '/history': ALWAYS } },
    ending: 'succeeded',
  },
  {
    fault: 'nonsense from /history for good, and a silent socket',
    when: 'before',
    faults: { garbage: { '/history': ALWAYS }, silentSocket: true },
    endsBy: ['unreachableMs'],
    ending: 'lost:engine_overloaded',
  },
  {
    fault: '503 from /history for good, and a silent socket',
    when: 'before',
    faults: { unavailable: { '/history': ALWAYS }, silentSocket: true },
    endsBy: ['unreachableMs'],
    ending: 'lost:engine_overloaded',
  },
  {
    fault: 'no answer from /history for good, and a silent socket',
    when: 'before',
    faults: { mute: { '/history': ALWAYS }, silentSocket: true },
    endsBy: ['callMs', 'unreachableMs'],
    ending: 'lost:engine_unreachable',
  },
  // Files.
  { fault: '500 from /view twice', faults: { viewError: 2 }, ending: 'succeeded' },
  {
    fault: '500 from /view for good',
    faults: { viewError: ALWAYS },
    ending: 'lost:output_unreadable',
  },
  { fault: '404 from /view once', faults: { viewMissing: 1 }, ending: 'succeeded' },
  { fault: 'a truncated file', faults: { viewTruncated: 2 }, ending: 'succeeded' },
  {
    fault: 'a truncated file without ranges',
    faults: { viewTruncated: 1, noRanges: true },
    ending: 'succeeded',
  },
  { fault: 'a wrong content length', faults: { viewWrongLength: 1 }, ending: 'succeeded' },
  {
    fault: 'a wrong content length for good, without ranges',
    faults: { viewWrongLength: ALWAYS, noRanges: true },
    ending: 'lost:output_unreadable',
  },
  {
    fault: 'one byte at a time',
    faults: { viewBytesPerSecond: 20 },
    endsBy: ['filePaceWindowMs'],
    ending: 'lost:output_unreadable',
  },
  { fault: 'duplicate names', faults: { duplicateNames: true }, ending: 'succeeded' },
  {
    fault: 'an upload that fails once',
    when: 'before',
    faults: { uploadError: 1 },
    ending: 'succeeded',
    graph: loadGraph,
    files,
  },
  {
    fault: 'uploads that fail',
    when: 'before',
    faults: { uploadError: ALWAYS },
    ending: 'lost:engine_overloaded',
    executions: 0,
    graph: loadGraph,
    files,
    phases: ['queued'],
  },
]

async function endingOf(run: Promise<RunResult>): Promise<{ ending: Ending; result: RunResult | null }> {
  try {
    const result = await run
    const last = result.events.at(-1)
    if (last?.type === 'failed') return { ending: `failed:${last.failure.code}`, result }
    assert.equal(last?.type, 'succeeded')
    return { ending: 'succeeded', result }
  } catch (error) {
    assert.ok(error instanceof EngineLostError, String(error))
    return { ending: `lost:${error.code}`, result: null }
  }
}

async function strike(fake: FakeComfy, { faults, act }: Case): Promise<void> {
  // A copy, because it counts how often the fault still has to occur.
  Object.assign(fake.faults, structuredClone(faults ?? {}))
  await act?.(fake)
}

async function check(phase: Phase, each: Case): Promise<void> {
  const { when, graph, ending, executions = 1 } = each
  await using rig = await openRig({}, shortBounds(...(each.endsBy ?? [])))
  const { fake, engine } = rig
  if (when === 'before') await strike(fake, each)
  fake.hold(phase)
  const inputs = each.files === undefined ? {} : { files: each.files }
  const run = endingOf(runGraph(engine, graph ?? saveGraph(COLOR), inputs))
  // A fault of the submit may keep the run from getting there.
  await Promise.race([each.isKept === true ? run : fake.held(phase), run])
  if (when !== 'before') await strike(fake, each)
  fake.release(phase)
  const { ending: reached, result } = await run
  assert.equal(reached, typeof ending === 'string' ? ending : ending[phase])
  assert.equal(fake.executions.length, typeof executions === 'number' ? executions : executions[phase])
  if (result === null || reached !== 'succeeded') return
  assert.equal(ofType(result.events, 'started').length, 1)
  assert.equal(result.events[0]?.type, 'started')
  assert.equal(result.files.length, 1)
  if (graph === undefined) assert.deepEqual(result.files[0]?.bytes, toPng({ width: 8, height: 8, color: COLOR }))
}

describe('the fault matrix', { concurrency: 16 }, () => {
  for (const each of CASES) {
    for (const phase of each.phases ?? PHASES) {
      test(`${each.fault}, ${phase}`, () => check(phase, each))
    }
  }
})
