/** The parts of the admin API's answers that the commands print; spec/admin.openapi.json describes them in full. */

export interface AccountSummary {
  readonly id: string
  readonly name: string
  readonly tier: string
  readonly status: string
  readonly created_at: string
}

export interface EntryWire {
  readonly at: string
  readonly kind: string
  readonly available_usd: string
  readonly reference: string
  readonly memo: string
}

interface BalanceWire {
  readonly available_usd: string
  readonly held_usd: string
}

export interface AccountWire extends AccountSummary {
  readonly overrides: Readonly<Record<string, unknown>>
  readonly limits: {
    readonly concurrentJobs: number
    readonly queuedJobs: number
    readonly streams: number
    readonly requestsPerMinute: number | null
    readonly requestBurst: number
    readonly allowModels: readonly string[] | null
    readonly denyModels: readonly string[]
    readonly subscriptionActive: boolean
  }
  readonly use: { readonly running: number; readonly queued: number; readonly streams: number }
  /** null: not metered. */
  readonly balance: BalanceWire | null
  readonly usage: { readonly from: string; readonly charged_usd: string }
  readonly holds: readonly { readonly id: string; readonly usd: string; readonly held_at: string }[]
  readonly entries: readonly EntryWire[]
}

export interface AccountPage {
  readonly accounts: readonly AccountSummary[]
  readonly next: string | null
}

export interface KeyWire {
  readonly id: string
  readonly account_id: string
  readonly name: string
  readonly scopes: readonly string[] | null
  readonly endpoints: readonly string[] | null
  readonly created_at: string
  readonly expires_at: string | null
  readonly revoked_at: string | null
  readonly last_used_at: string | null
  readonly previous_until: string | null
}

export interface ShownKeyWire extends KeyWire {
  readonly text: string
}

export interface WorkerKeyWire extends Omit<KeyWire, 'account_id' | 'scopes' | 'endpoints' | 'previous_until'> {
  readonly pools: readonly string[]
  readonly credentials: boolean
  readonly builds: boolean
}

export interface ShownWorkerKeyWire extends WorkerKeyWire {
  readonly text: string
  readonly takes_workers: boolean
}

export interface GrantWire {
  readonly outcome: string
  readonly balance: BalanceWire
}

export interface LedgerReportWire {
  readonly accounts: number
  readonly entries: number
  readonly open_holds: number
  readonly faults: readonly {
    readonly fault: string
    readonly account_id: string
    readonly reference: string | null
    readonly expected_micros: number | null
    readonly found_micros: number | null
  }[]
}

export interface DeploymentWire {
  readonly id: string
  readonly state: string
  readonly account_id: string | null
  readonly workers: number
  readonly use: { readonly queued: number; readonly running: number; readonly workers: number }
  readonly path: string
  readonly host: string | null
}

export interface NodeWire {
  readonly id: string
  readonly state: string
  readonly role: string
  readonly version: string
  readonly host: string
  readonly url: string | null
  readonly seen_at: string
  readonly workers: Readonly<Record<string, number>>
  readonly holds: {
    readonly jobs: number
    readonly calls: number
    readonly chores: readonly string[]
    readonly engines: readonly string[]
  }
}

interface StatementSumWire {
  readonly count: number
  readonly charged_usd: string
  readonly refunded_usd: string
}

export interface StatementWire extends StatementSumWire {
  readonly account_id: string
  readonly month: string
  readonly final: boolean
  readonly opening_usd: string
  readonly added_usd: string
  readonly taken_back_usd: string
  readonly closing_usd: string
  readonly held_usd: string
  readonly holds: number
  readonly lines: readonly (StatementSumWire & {
    readonly kind: string
    readonly model: string | null
    readonly pool: string | null
    readonly endpoint: string | null
  })[]
  readonly rest: StatementSumWire | null
}
