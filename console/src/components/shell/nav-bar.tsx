import { useState } from 'preact/hooks'
import { hrefOf, path } from '../../routes.ts'
import { type Session, session } from '../../state/session.ts'
import { Icon, type IconName } from '../icon.tsx'

export function NavBar() {
  const { value: current } = session
  const [isMoreOpen, setMoreOpen] = useState(false)
  if (current === null) return null
  const place = path.value.replace(/^\/publish(?=\/|$)/, '/endpoints')
  const isHere = (to: string) => (to === '/' ? path.value === '/' : `${place}/`.startsWith(`${to}/`))
  const there = PLACES.filter(({ isThere = () => true }) => isThere(current))
  return (
    <nav class={`nav ${isMoreOpen ? 'more-open' : ''}`} aria-label="Places">
      <a class="brand" href={hrefOf('/')}>
        Atelier
      </a>
      <ul onClick={() => setMoreOpen(false)}>
        {there.map(({ to, label, icon, isFirst = false }) => (
          <li key={to} class={isFirst ? '' : 'later'}>
            <a href={hrefOf(to)} aria-current={isHere(to) ? 'page' : undefined} title={label}>
              <Icon name={icon} />
              <span>{label}</span>
            </a>
          </li>
        ))}
      </ul>
      <button type="button" class="nav-more" aria-expanded={isMoreOpen} onClick={() => setMoreOpen(!isMoreOpen)}>
        <Icon name="dots" />
        <span>More</span>
      </button>
      {current.kind === 'local' && !current.needs_credential && <p class="local-note dim">local, no token</p>}
    </nav>
  )
}

interface NavPlace {
  readonly to: string
  readonly label: string
  readonly icon: IconName
  /** Left out: always there. */
  readonly isThere?: (current: Session) => boolean
  /** One of the five that a narrow screen shows; the others are behind "More". */
  readonly isFirst?: boolean
}

/** The places of the console and who sees them. */
export const PLACES: readonly NavPlace[] = [
  { to: '/', label: 'Home', icon: 'home', isFirst: true },
  { to: '/jobs', label: 'Jobs', icon: 'list', isThere: hasAccount, isFirst: true },
  { to: '/run', label: 'Run', icon: 'play', isThere: hasAccount, isFirst: true },
  { to: '/endpoints', label: 'Endpoints', icon: 'endpoint', isThere: hasAccount },
  { to: '/schedules', label: 'Schedules', icon: 'clock', isThere: hasAccount },
  {
    to: '/environments',
    label: 'Environments',
    icon: 'stack',
    isThere: (current) => hasAccount(current) && current.features.environments,
  },
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
