/**
 * The bounds of ComfyUI engines in tests. Pauses are short, so that tests are quick. Give-ups are so long that none of them ends
 * anything, however busy the machine is: a test shortens only those that it is about, and names them.
 */
import type { ComfyBounds } from '../../../src/adapters/engines/comfyui/comfy-bounds.ts'

/** Longer than any test waits. */
export const LONG_MS = 600_000

export const PATIENT_BOUNDS: Partial<ComfyBounds> = {
  pollFirstMs: 10,
  pollMaxMs: 60,
  reconnectFirstMs: 10,
  reconnectMaxMs: 100,
  sameIdPauseMs: 200,
  interruptEveryMs: 40,
  fileTries: 3,
  fileRetryMs: 10,
  probeEveryMs: 200,
  probeMaxMs: 300,
  catalogMinMs: 0,
  freeSettleMs: 0,

  callMs: LONG_MS,
  objectInfoMs: LONG_MS,
  submitMs: LONG_MS,
  uploadIdleMs: LONG_MS,
  unreachableMs: LONG_MS,
  refusedMs: LONG_MS,
  vanishedMs: LONG_MS,
  drainQuietMs: LONG_MS,
  drainMs: LONG_MS,
  socketSilenceMs: LONG_MS,
  stallMs: LONG_MS,
  idleMs: LONG_MS,
  queueStillMs: LONG_MS,
  socketWaitMs: LONG_MS,
  socketOpenMs: LONG_MS,
  stopGraceMs: LONG_MS,
  fileFirstByteMs: LONG_MS,
  fileIdleMs: LONG_MS,
  filePaceWindowMs: LONG_MS,
  removeAfterMs: LONG_MS,
}

/** Each so short that a test can wait for it, and long enough for a server that does answer. */
const SHORT = {
  callMs: 2_500,
  unreachableMs: 4_000,
  refusedMs: 600,
  vanishedMs: 500,
  socketSilenceMs: 300,
  stallMs: 2_000,
  idleMs: 5_000,
  queueStillMs: 600,
  socketWaitMs: 300,
  stopGraceMs: 1_500,
  fileFirstByteMs: 2_500,
  filePaceWindowMs: 200,
} as const satisfies Partial<ComfyBounds>

export type ShortBound = keyof typeof SHORT

/** What to set for a test that waits for these bounds. */
export function shortBounds(...names: readonly ShortBound[]): Partial<ComfyBounds> {
  return Object.fromEntries(names.map((name) => [name, SHORT[name]]))
}

export function isShortBound(name: string): name is ShortBound {
  return Object.hasOwn(SHORT, name)
}
