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

export function OperatorTabs({ here }: { readonly here: keyof typeof PLACES }) {
  const isLocal = session.value?.kind === 'local'
  const there = Object.entries(PLACES).filter(([name]) => !isLocal || (name !== 'accounts' && name !== 'deployments'))
  return <PageTabs label="Operator" places={there.map(([, place]) => place)} here={PLACES[here][0]} />
}
