/** Who is signed in and what this service offers. Asked at the start, after signing in or out, and now and then as a sign of life. */
import { signal } from '@preact/signals'
import { type ApiError, getJson, send } from '../api/client.ts'
import { BASE } from '../routes.ts'

export interface Account {
  readonly id: string
  readonly name: string
  readonly tier: string | null
  readonly running: number
  readonly queued: number
  readonly max_running: number | null
  readonly max_queued: number
  /** What a job costs; null: nothing. */
  readonly job_price: {
    readonly per_second_usd: string
    readonly minimum_usd: string
    readonly hold_usd: string
  } | null
  readonly credit: { readonly available_usd: string; readonly held_usd: string } | null
}

export interface Session {
  readonly kind: 'local' | 'cloud' | 'serverless'
  readonly version: string
  readonly build: string | null
  readonly now: string
  readonly needs_credential: boolean
  readonly signed_in: boolean
  readonly operator: boolean
  readonly may_become_operator: boolean
  readonly account: Account | null
  readonly scopes: readonly string[] | null
  readonly features: {
    readonly models: boolean
    readonly accounts: boolean
    readonly environments: boolean
    readonly deployments: boolean
  }
}

/** null: not known yet. */
export const session = signal<Session | null>(null)
/** Why it is not known; null: it is, or the question is under way. */
export const sessionError = signal<ApiError | null>(null)

const SIGN_OF_LIFE_MS = 5 * 60_000

/** Tells the other tabs of this browser that the session is another one. */
const tabs = new BroadcastChannel(`atelier-session ${BASE}`)

export async function loadSession(): Promise<void> {
  try {
    const next = await getJson<Session>('/console/v1/session')
    // Nothing that one account was shown may be left in the memory of a page that another one uses.
    if (isLeft(session.value, next)) return window.location.reload()
    session.value = next
    sessionError.value = null
  } catch (error) {
    sessionError.value = error as ApiError
  }
}

export async function signIn(credential: string): Promise<'account' | 'operator'> {
  const { role } = await send<{ readonly role: 'account' | 'operator' }>('POST', '/console/v1/session', { credential })
  await loadSession()
  tabs.postMessage('changed')
  return role
}

export async function signOut({ everywhere = false }: { readonly everywhere?: boolean } = {}): Promise<void> {
  await send('DELETE', `/console/v1/session${everywhere ? '?everywhere=1' : ''}`)
  tabs.postMessage('changed')
  window.location.assign(`${BASE}/console/sign-in`)
}

/** Whether somebody was here who no longer is. */
function isLeft(before: Session | null, next: Session): boolean {
  if (before === null) return false
  const hasOtherAccount = before.account !== null && before.account.id !== next.account?.id
  return hasOtherAccount || (before.operator && !next.operator)
}

/** Only while somebody looks: a page that nobody sees lets its session lapse. */
export function keepSessionAlive(): void {
  tabs.onmessage = () => void loadSession()
  setInterval(() => {
    if (
      document.visibilityState === 'visible' &&
      (session.value?.signed_in === true || session.value?.operator === true)
    )
      void loadSession()
  }, SIGN_OF_LIFE_MS)
}
