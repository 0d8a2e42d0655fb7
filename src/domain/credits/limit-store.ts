/** Request rates in the store, so that they hold over all processes and restarts. */
export interface RequestRate {
  readonly perMinute: number
  /** The most that may be taken at once after a pause. */
  readonly burst: number
}

export interface RequestGrant {
  /** Requests that may be made now: from none to what was asked for. */
  readonly granted: number
  /** When there will be another one; only meaningful when fewer than asked for were granted. */
  readonly nextAt: Date
}

export interface LimitStore {
  /** Over any time t the grants of an account never add up to more than `burst + perMinute * t`. */
  takeRequests(accountId: string, rate: RequestRate, count: number, now: Date): Promise<RequestGrant>
}
