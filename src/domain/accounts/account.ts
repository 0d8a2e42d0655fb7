/** Whoever owns jobs and assets. The local kind has exactly one, implicit account. */
export interface Account {
  readonly id: string
  readonly maxRunning: number
  readonly maxQueued: number
}

export const LOCAL_ACCOUNT_ID = 'local'
