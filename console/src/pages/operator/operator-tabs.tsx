import { hrefOf } from '../../routes.ts'
import { session } from '../../state/session.ts'

const PLACES = {
  overview: ['/operator', 'Overview'],
  engines: ['/operator/engines', 'Engines'],
  accounts: ['/operator/accounts', 'Accounts'],
  deployments: ['/operator/deployments', 'Deployments'],
  audit: ['/operator/audit', 'Audit'],
} as const

export function OperatorTabs({ here }: { readonly here: keyof typeof PLACES }) {
  const isLocal = session.value?.kind === 'local'
  return (
    <nav class="segments page-tabs" aria-label="Operator">
      {Object.entries(PLACES)
        .filter(([name]) => !isLocal || (name !== 'accounts' && name !== 'deployments'))
        .map(([name, [to, label]]) => (
          <a key={name} href={hrefOf(to)} aria-current={name === here ? 'page' : undefined}>
            {label}
          </a>
        ))}
    </nav>
  )
}
