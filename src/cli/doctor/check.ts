/** One finding of `atelier doctor`. */
export interface Finding {
  readonly state: 'ok' | 'warn' | 'fail'
  readonly what: string
  readonly says: string
  /** What to do about it; null when there is nothing to do. */
  readonly remedy: string | null
}

export function ok(what: string, says: string): Finding {
  return { state: 'ok', what, says, remedy: null }
}

export function warn(what: string, says: string, remedy: string): Finding {
  return { state: 'warn', what, says, remedy }
}

export function fail(what: string, says: string, remedy: string): Finding {
  return { state: 'fail', what, says, remedy }
}

export function toReason(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, ' ')
}
