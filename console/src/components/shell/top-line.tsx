/** Search, how live the page is, who is here and what is left to spend. */
import { lazy } from '../../lazy.tsx'
import { hrefOf } from '../../routes.ts'
import { draining, newBuild } from '../../state/live/live.ts'
import { isPaletteOpen } from '../../state/palette.ts'
import { session } from '../../state/session.ts'
import { Money } from '../figures.tsx'
import { Words } from '../words.tsx'
import { LiveDot } from './live-dot.tsx'
import { SearchBox } from './search-box.tsx'

export function TopLine() {
  const { account, operator } = session.value ?? {}
  return (
    <header class="top-line">
      {account != null && <SearchBox />}
      {account != null && (
        <button
          type="button"
          class="button small palette-button"
          title="Commands (⌘K or Ctrl K)"
          onClick={() => {
            isPaletteOpen.value = true
          }}
        >
          ⌘K<span class="unseen"> Commands</span>
        </button>
      )}
      <div class="top-line-space" />
      {account != null && <LiveDot />}
      {account != null && (
        <a
          class="account-line"
          href={hrefOf(session.value?.features.accounts === true ? '/account/usage' : '/settings')}
        >
          <span class="unseen">{session.value?.features.accounts === true ? 'Usage of ' : 'Account '}</span>
          <Words text={account.name} /> {account.credit !== null && <Money usd={account.credit.available_usd} />}
        </a>
      )}
      {account == null && operator === true && <span class="account-line">operator</span>}
    </header>
  )
}

export function NoticeLine() {
  if (draining.value)
    return (
      <p class="notice-line" role="status">
        The service is being stopped: what runs is finished or handed back, what waits keeps its place.
      </p>
    )
  if (newBuild.value === null) return null
  return (
    <p class="notice-line" role="status">
      There is a new version of this page.{' '}
      <button type="button" class="link-button" onClick={() => window.location.reload()}>
        Reload
      </button>
    </p>
  )
}

export const Palette = lazy(() => import('./palette.tsx').then(({ CommandPalette }) => CommandPalette))
