/**
 * Lets a thread start beside another one whose work it needs: it loads its code, waits at the gate, and then goes on, or ends
 * because there is nothing to go on with.
 */
export type Gate = Int32Array<SharedArrayBuffer>

const CLOSED = 0
const OPEN = 1
const GIVEN_UP = 2

export function createGate(): Gate {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
}

export function openGate(gate: Gate): void {
  set(gate, OPEN)
}

export function giveUpGate(gate: Gate): void {
  set(gate, GIVEN_UP)
}

function set(gate: Gate, state: number): void {
  Atomics.store(gate, 0, state)
  Atomics.notify(gate, 0)
}

/** Blocks the thread. Returns whether it may go on. */
export function passGate(gate: Gate): boolean {
  Atomics.wait(gate, 0, CLOSED)
  return Atomics.load(gate, 0) === OPEN
}
