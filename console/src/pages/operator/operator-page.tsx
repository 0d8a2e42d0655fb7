/** What every page of the operator has around it. */
import type { ComponentChildren } from 'preact'
import { PageTabs } from '../../components/tabs/page-tabs.tsx'
import { session } from '../../state/session.ts'

const PLACES = {
  overview: ['/operator', 'Overview'],
  jobs: ['/operator/jobs', 'Jobs'],
  engines: ['/operator/engines', 'Engines'],
  accounts: ['/operator/accounts', 'Accounts'],
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
  const there = Object.entries(PLACES).filter(([name]) => !isLocal || (name !== 'accounts' && name !== 'deployments'))
  return (
    <section class="page">
      <h1>{title}</h1>
      <PageTabs label="Operator" places={there.map(([, place]) => place)} here={PLACES[here][0]} />
      {children}
    </section>
  )
}
