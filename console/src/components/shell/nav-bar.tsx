import { useState } from 'preact/hooks'
import { hrefOf, path } from '../../routes.ts'
import { session } from '../../state/session.ts'
import { Icon } from '../icon.tsx'
import { PLACES } from './places.ts'

export function NavBar() {
  const { value: current } = session
  const [isMoreOpen, setMoreOpen] = useState(false)
  if (current === null) return null
  const isHere = (to: string) =>
    to === '/' ? path.value === '/' : path.value === to || path.value.startsWith(`${to}/`)
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
