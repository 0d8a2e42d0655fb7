/** Time is a dependency: tests hand in a clock that they move by hand. */
export interface Clock {
  now(): Date
}

export const systemClock: Clock = { now: () => new Date() }
