import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EngineLostError } from '../../engine/engine-lost-error.ts'
import {
  type EngineLoss,
  isDeaf,
  moveRun,
  type RunMove,
  type RunPhase,
  type RunState,
  type RunStep,
  START,
  type StopCause,
  toEngineLoss,
  toJobError,
} from './run-moves.ts'

const CANCEL: StopCause = { cause: 'cancel' }
const TIMEOUT: StopCause = { cause: 'timeout', limitMs: 1000 }
const FULL = { cause: 'failed', error: toJobError('storage_full', 'full'), mayPass: true } as const
const GONE: EngineLoss = toEngineLoss(new EngineLostError('engine_unreachable', 'it was gone'))
const CAUSE = new Error('no room')

const STARTED: RunMove = { move: 'engine_started' }
const SILENT: RunMove = { move: 'engine_silent' }
const DECIDED: RunMove = { move: 'decided' }
const LOST: RunMove = { move: 'lease_lost' }
const RETURNED: RunMove = { move: 'lease_returned' }
const GRACE_OVER: RunMove = { move: 'grace_over' }
const stop = (cause: StopCause): RunMove => ({ move: 'stop', stop: cause })
const outputFailed = (loss: EngineLoss | null = null): RunMove => ({
  move: 'output_failed',
  stop: FULL,
  loss,
  cause: CAUSE,
})
const engineLost = (loss: Partial<EngineLoss> = {}): RunMove => ({ move: 'engine_lost', loss: { ...GONE, ...loss } })

const PATH_TO: Record<RunPhase, readonly RunMove[]> = {
  preparing: [],
  executing: [STARTED],
  storing: [STARTED, SILENT],
  ending: [STARTED, SILENT, DECIDED],
  discarded: [STARTED, LOST],
}
const PHASES = Object.keys(PATH_TO) as RunPhase[]
const BEFORE_THE_END = ['preparing', 'executing', 'storing'] as const

function walk(...moves: readonly RunMove[]): RunStep {
  return moves.reduce<RunStep>(
    (before, move) => {
      const { state, effects } = moveRun(before.state, move)
      return { state, effects: [...before.effects, ...effects] }
    },
    { state: START, effects: [] },
  )
}

const inPhase = (phase: RunPhase, ...moves: readonly RunMove[]): RunState => walk(...PATH_TO[phase], ...moves).state

/** The effects of the last move alone. */
function effectsOf(before: readonly RunMove[], move: RunMove): string[] {
  return moveRun(walk(...before).state, move).effects.map(({ effect }) => effect)
}

test('an undisturbed run goes through every phase without an effect', () => {
  const phases = [STARTED, SILENT, DECIDED].map((_move, index, moves) => walk(...moves.slice(0, index + 1)))
  assert.deepEqual(
    phases.map(({ state }) => state.phase),
    ['executing', 'storing', 'ending'],
  )
  assert.deepEqual(phases.at(-1)?.effects, [])
})

test('a job that must not run ends without its engine having been asked', () => {
  const { state } = walk(DECIDED)
  assert.equal(state.phase, 'ending')
  assert.equal(state.engine, 'unasked')
})

test('a cancel interrupts the engine and changes nothing else', () => {
  for (const phase of BEFORE_THE_END) {
    const before = inPhase(phase)
    const { state, effects } = moveRun(before, stop(CANCEL))
    assert.deepEqual(state, { ...before, stop: CANCEL })
    assert.deepEqual(effects, [{ effect: 'interrupt' }])
  }
})

test('a cancel after the verdict comes too late', () => {
  for (const phase of ['ending', 'discarded'] as const) {
    const before = inPhase(phase)
    assert.deepEqual(moveRun(before, stop(CANCEL)), { state: before, effects: [] })
  }
})

test('the first reason to stop counts, and only an output that cannot be kept replaces it', () => {
  assert.equal(inPhase('executing', stop(CANCEL), stop(TIMEOUT)).stop, CANCEL)
  assert.equal(inPhase('executing', stop(TIMEOUT), stop(CANCEL)).stop, TIMEOUT)
  assert.equal(inPhase('executing', stop(CANCEL), outputFailed()).stop, FULL)
  assert.equal(inPhase('executing', outputFailed(), stop(CANCEL)).stop, FULL)
  const other: StopCause = { cause: 'failed', error: toJobError('too_many_outputs', 'many'), mayPass: false }
  assert.equal(inPhase('executing', outputFailed(), stop(other)).stop, FULL)
})

test('an output that cannot be kept is logged and stops the run, which is interrupted once', () => {
  assert.deepEqual(effectsOf([STARTED], outputFailed()), ['log_output_fault', 'interrupt'])
  assert.deepEqual(effectsOf([STARTED, stop(CANCEL)], outputFailed()), ['log_output_fault'])
})

test('an engine that does not hand out its files is paused, and the run stops for the output', () => {
  const { state, effects } = moveRun(inPhase('storing'), outputFailed(GONE))
  assert.equal(state.loss, GONE)
  assert.equal(state.stop, FULL)
  assert.deepEqual(
    effects.map(({ effect }) => effect),
    ['log_output_fault', 'pause_engine', 'interrupt'],
  )
})

test('an output that fails after the run was cut short makes it incomplete, and is no fault', () => {
  const { state, effects } = moveRun(inPhase('executing', stop(CANCEL), GRACE_OVER), outputFailed())
  assert.equal(state.outputs, 'incomplete')
  assert.equal(state.stop, CANCEL)
  assert.deepEqual(effects, [])
})

test('an output that took too long to store fails the run when nothing had stopped it', () => {
  const { state } = walk(STARTED, SILENT, { move: 'storing_overdue' }, outputFailed())
  assert.equal(state.outputs, 'cut')
  assert.equal(state.stop, FULL)
})

test('outputs of a lost engine that cannot be read any more are no fault of the job', () => {
  const before = inPhase('executing', engineLost(), SILENT)
  assert.deepEqual(moveRun(before, outputFailed()), { state: before, effects: [] })
})

test('a lost engine is paused at once and its outputs are given up when its events have ended', () => {
  assert.deepEqual(effectsOf([STARTED], engineLost()), ['pause_engine'])
  assert.deepEqual(effectsOf([STARTED, engineLost()], SILENT), ['cut_outputs'])
  assert.equal(inPhase('executing', engineLost(), SILENT).phase, 'storing')
})

test('an engine that another run took down is not paused', () => {
  assert.deepEqual(effectsOf([STARTED], engineLost({ isBlameless: true })), [])
})

test('an engine that is unfit is given up, though the run waits for its events to end', () => {
  const state = inPhase('executing', engineLost({ isUnfit: true }))
  assert.equal(state.engine, 'stuck')
  assert.equal(state.phase, 'executing')
  assert.ok(isDeaf(state))
  assert.equal(moveRun(state, SILENT).state.engine, 'stuck')
})

test('an engine that ignores the interrupt is given up after the grace period', () => {
  const { state, effects } = moveRun(inPhase('executing', stop(CANCEL)), GRACE_OVER)
  assert.equal(state.engine, 'stuck')
  assert.equal(state.phase, 'storing')
  assert.deepEqual(
    effects.map(({ effect }) => effect),
    ['cut_outputs', 'give_up_engine'],
  )
  assert.deepEqual(effectsOf([STARTED, stop(CANCEL), GRACE_OVER], engineLost()), [])
})

test('an engine that ended within the grace period is not stuck', () => {
  assert.equal(inPhase('executing', stop(CANCEL), SILENT, GRACE_OVER).engine, 'silent')
  assert.equal(inPhase('preparing', stop(CANCEL), GRACE_OVER).engine, 'unasked')
})

test('a run without its lease is discarded: nothing more is written, and the engine is let go or interrupted', () => {
  for (const phase of BEFORE_THE_END) {
    assert.deepEqual(effectsOf(PATH_TO[phase], LOST), ['stop_writing', 'cut_outputs', 'let_go', 'observe_lease_lost'])
    assert.deepEqual(effectsOf(PATH_TO[phase], { move: 'run_left' }), ['stop_writing', 'cut_outputs', 'let_go'])
    assert.deepEqual(effectsOf(PATH_TO[phase], RETURNED), ['stop_writing', 'cut_outputs', 'interrupt'])
    assert.deepEqual(effectsOf([...PATH_TO[phase], stop(CANCEL)], RETURNED), ['stop_writing', 'cut_outputs'])
    assert.equal(inPhase(phase, RETURNED).phase, 'discarded')
  }
})

test('an engine that ignores the interrupt of a discarded run is stuck all the same', () => {
  const { state } = walk(STARTED, LOST, GRACE_OVER)
  assert.equal(state.phase, 'discarded')
  assert.equal(state.engine, 'stuck')
})

test('a lease that is lost after the verdict only keeps a failed write from being repeated', () => {
  for (const move of [LOST, RETURNED]) {
    const before = inPhase('ending')
    assert.deepEqual(moveRun(before, move), { state: { ...before, holdsLease: false }, effects: [] })
  }
})

test('an end that the store refuses discards the run', () => {
  const { state, effects } = moveRun(inPhase('ending'), { move: 'end_refused' })
  assert.equal(state.phase, 'discarded')
  assert.deepEqual(effects, [{ effect: 'observe_lease_lost' }])
})

test('whatever happens in whatever order, a run moves forward only', () => {
  const every: readonly RunMove[] = [
    STARTED,
    SILENT,
    engineLost(),
    engineLost({ isUnfit: true }),
    engineLost({ isBlameless: true }),
    stop(CANCEL),
    stop(TIMEOUT),
    outputFailed(),
    outputFailed(GONE),
    GRACE_OVER,
    { move: 'storing_overdue' },
    LOST,
    RETURNED,
    DECIDED,
    { move: 'end_refused' },
  ]
  let seed = 7
  const pick = () => {
    seed = (seed * 48_271) % 2_147_483_647
    return every[seed % every.length]
  }
  for (let round = 0; round < 5000; round++) {
    const seen: string[] = []
    let before = START
    for (let length = 0; length < 12; length++) {
      const { state, effects } = moveRun(before, pick())
      assert.ok(PHASES.indexOf(state.phase) >= PHASES.indexOf(before.phase), `${before.phase} -> ${state.phase}`)
      if (before.phase === 'discarded') assert.equal(state.stop, before.stop)
      if (before.engine === 'stuck') assert.equal(state.engine, 'stuck')
      if (before.stop?.cause === 'failed') assert.equal(state.stop, before.stop)
      if (before.outputs === 'incomplete') assert.equal(state.outputs, 'incomplete')
      if (!before.holdsLease) assert.equal(state.holdsLease, false)
      seen.push(...effects.map(({ effect }) => effect))
      before = state
    }
    assert.ok(seen.filter((effect) => effect === 'interrupt').length <= 1)
    assert.ok(seen.filter((effect) => effect === 'observe_lease_lost').length <= 1)
  }
})
