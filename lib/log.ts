/** The interface of a logger. pino satisfies it; tests pass in a silent or a recording one. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  child(fields: object): Log
}

export const silentLog: Log = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child() {
    return silentLog
  },
}
