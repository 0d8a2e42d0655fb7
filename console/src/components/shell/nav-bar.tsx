import { hrefOf, path } from '../../routes.ts'
import { type Session, session } from '../../state/session.ts'
import { Icon, type IconName } from '../icon.tsx'

interface NavPlace {
  readonly to: string
  readonly label: string
  readonly icon: IconName
  /** Left out: always there. */
  readonly isThere?: (current: Session) => boolean
}

const PLACES: readonly NavPlace[] = [
  { to: '/', label: 'Home', icon: 'home' },
  { to: '/jobs', label: 'Jobs', icon: 'list', isThere: hasAccount },
  { to: '/run', label: 'Run', icon: 'play', isThere: hasAccount },
  { to: '/gallery', label: 'Gallery', icon: 'picture', isThere: hasAccount },
  {
    to: '/models',
    label: 'Models',
    icon: 'spark',
    isThere: (current) => hasAccount(current) && current.features.models,
  },
  { to: '/assets', label: 'Assets', icon: 'file', isThere: hasAccount },
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

export function NavBar() {
  const { value: current } = session
  if (current === null) return null
  const isHere = (to: string) =>
    to === '/' ? path.value === '/' : path.value === to || path.value.startsWith(`${to}/`)
  return (
    <nav class="nav" aria-label="Places">
      <a class="brand" href={hrefOf('/')}>
        Atelier
      </a>
      <ul>
        {PLACES.filter(({ isThere = () => true }) => isThere(current)).map(({ to, label, icon }) => (
          <li key={to}>
            <a href={hrefOf(to)} aria-current={isHere(to) ? 'page' : undefined} title={label}>
              <Icon name={icon} />
              <span>{label}</span>
            </a>
          </li>
        ))}
      </ul>
    </nav>
  )
}
