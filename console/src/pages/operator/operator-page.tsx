/** What every page of the operator has around it. */
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { PageTabs } from '../../components/tabs/tabs.tsx'
import { isWatched } from '../../state/live/presence.ts'
import { openStream } from '../../state/live/stream.ts'
import type { Resource } from '../../state/resource.ts'
import { session } from '../../state/session.ts'

const PLACES = {
  overview: ['/operator', 'Overview'],
  jobs: ['/operator/jobs', 'Jobs'],
  engines: ['/operator/engines', 'Engines'],
  accounts: ['/operator/accounts', 'Accounts'],
  usage: ['/operator/usage', 'Usage'],
  deployments: ['/operator/deployments', 'Deployments'],
  audit: ['/operator/audit', 'Audit'],
} as const

interface OperatorPageProps {
  readonly here: keyof typeof PLACES
  readonly title: string
  readonly children: ComponentChildren
}

export function OperatorPage({ here, title, children }: OperatorPageProps) {
  const isLocal = session.value?.kind === 'local'
  const there = Object.entries(PLACES).filter(
    ([name]) => !isLocal || !['accounts', 'usage', 'deployments'].includes(name),
  )
  return (
    <section class="page">
      <h1>{title}</h1>
      <PageTabs label="Operator" places={there.map(([, place]) => place)} here={PLACES[here][0]} />
      {children}
    </section>
  )
}

const PACE_MS = 1000

/** Asks a question anew whenever something happens in the service, at most once a second, as long as somebody looks. */
export function useServiceEvents(resource: Resource<unknown>): void {
  const isSeen = isWatched.value
  useEffect(() => {
    if (!isSeen) return
    let due: ReturnType<typeof setTimeout> | undefined
    const close = openStream({
      path: '/admin/v1/events',
      onFrame: () => {
        due ??= setTimeout(() => {
          due = undefined
          resource.reload()
        }, PACE_MS)
      },
      onState: () => {},
    })
    return () => {
      close()
      clearTimeout(due)
    }
  }, [resource, isSeen])
}
