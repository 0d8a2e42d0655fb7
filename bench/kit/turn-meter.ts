/**
 * How long the main thread was held without a break: the CPU time that it spent in one turn of its event loop. CPU time and
 * not the clock, so that a neighbour on the machine does not count.
 */
export interface TurnMeter {
  /** The longest turn since the last call, in milliseconds. */
  takeLongestMs(): number
}

/** Keeps the loop turning, so that every turn is seen; for measuring only. */
export function startTurnMeter(): TurnMeter {
  let longestMicros = 0
  let before = readCpuMicros()
  const look = () => {
    const now = readCpuMicros()
    longestMicros = Math.max(longestMicros, now - before)
    before = now
    setImmediate(look)
  }
  setImmediate(look)
  return {
    takeLongestMs() {
      const longestMs = longestMicros / 1000
      longestMicros = 0
      // What was measured before this call does not belong to the new measurement.
      before = readCpuMicros()
      return longestMs
    },
  }
}

function readCpuMicros(): number {
  const { user, system } = process.threadCpuUsage()
  return user + system
}
