/** The steps of a model call at which the process may die, in their order, and the kinds of model that pass them. */
export const CRASH_STEPS = {
  'before it is let in': ['direct', 'polled'],
  'let in, not dispatched': ['direct', 'polled'],
  'the provider has it': ['direct', 'polled'],
  'accepted, handle not stored': ['polled'],
  'handle stored': ['polled'],
  'while it is polled': ['polled'],
  'finished, not settled': ['direct', 'polled'],
  'settled, not answered': ['direct', 'polled'],
} as const satisfies Record<string, readonly ('direct' | 'polled')[]>

export type CrashStep = keyof typeof CRASH_STEPS

/** At which step each call stops, by its name. */
export type CrashPlan = Readonly<Record<string, CrashStep>>

/** A call has a model of its own, by which it is known everywhere: `crash/direct-0` and so on. */
export const MOST_CALLS = 16
