/** The places of the console and who sees them. */
import type { Session } from '../../state/session.ts'
import type { IconName } from '../icon.tsx'

interface NavPlace {
  readonly to: string
  readonly label: string
  readonly icon: IconName
  /** Left out: always there. */
  readonly isThere?: (current: Session) => boolean
  /** One of the five that a narrow screen shows; the others are behind "More". */
  readonly isFirst?: boolean
}

export const PLACES: readonly NavPlace[] = [
  { to: '/', label: 'Home', icon: 'home', isFirst: true },
  { to: '/jobs', label: 'Jobs', icon: 'list', isThere: hasAccount, isFirst: true },
  { to: '/run', label: 'Run', icon: 'play', isThere: hasAccount, isFirst: true },
  { to: '/gallery', label: 'Gallery', icon: 'picture', isThere: hasAccount, isFirst: true },
  {
    to: '/models',
    label: 'Models',
    icon: 'spark',
    isThere: (current) => hasAccount(current) && current.features.models,
  },
  { to: '/assets', label: 'Assets', icon: 'file', isThere: hasAccount },
  { to: '/webhooks', label: 'Webhooks', icon: 'link', isThere: hasAccount },
  {
    to: '/account',
    label: 'Account',
    icon: 'person',
    isThere: (current) => hasAccount(current) && current.features.accounts,
  },
  { to: '/operator', label: 'Operator', icon: 'gauge', isThere: ({ operator }) => operator },
  { to: '/settings', label: 'Settings', icon: 'gear' },
]

function hasAccount({ signed_in }: Session): boolean {
  return signed_in
}
