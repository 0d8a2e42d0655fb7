/**
 * Loaded into a process of the service before anything else: gives it a wall clock that can be wrong and a disk that can be full. A
 * small file says how, and is read again and again, by the threads of the process too. The monotonic clock stays right, as it does
 * when somebody sets the time of a machine.
 */
import fs from 'node:fs'

export interface ProcessFaults {
  readonly clockOffsetMs: number
  readonly isDiskFull: boolean
}

const READ_EVERY_MS = 200
// Standard output and error go to whoever started the process, and to no disk.
const LAST_STANDARD_FD = 2

const path = process.env['CHAOS_FAULTS_FILE']
let faults: ProcessFaults = { clockOffsetMs: 0, isDiskFull: false }

function read(file: string): void {
  try {
    faults = JSON.parse(fs.readFileSync(file, 'utf8')) as ProcessFaults
  } catch {
    // It is just being written.
  }
}

if (path !== undefined) {
  read(path)
  setInterval(read, READ_EVERY_MS, path).unref()
  shiftClock()
  fillDisk()
}

function shiftClock(): void {
  const Real = Date
  const now = () => Real.now() + faults.clockOffsetMs
  globalThis.Date = new Proxy(Real, {
    construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    apply: () => new Real(now()).toString(),
    get: (target, name, receiver) => (name === 'now' ? now : Reflect.get(target, name, receiver)),
  })
}

function fillDisk(): void {
  const write = fs.write
  // biome-ignore lint/suspicious/noExplicitAny: stands in for all overloads of the function
  const limited = (fd: number, ...rest: any[]) => {
    const callback = rest.at(-1)
    if (!faults.isDiskFull || fd <= LAST_STANDARD_FD || typeof callback !== 'function')
      return Reflect.apply(write, fs, [fd, ...rest])
    const error = Object.assign(new Error('ENOSPC: no space left on device, write'), {
      code: 'ENOSPC',
      syscall: 'write',
    })
    setImmediate(callback, error)
  }
  fs.write = limited as typeof fs.write
}
