import { render } from 'preact'
import { Shell } from './components/shell/shell.tsx'
import { ErrorBox } from './components/state.tsx'
import { Words } from './components/text.tsx'
import { followKeys } from './keys/keys.ts'
import { Boundary } from './lazy.tsx'
import { findPage } from './pages/pages.tsx'
import { SignInPage } from './pages/sign-in/sign-in-page.tsx'
import { followAddress, path } from './routes.ts'
import { startClock } from './state/clock.ts'
import { startLive } from './state/live/live.ts'
import { followPresence } from './state/live/presence.ts'
import { applyPreferences } from './state/preferences.ts'
import { keepSessionAlive, loadSession, session, sessionError } from './state/session.ts'

applyPreferences()
followAddress()
followKeys()
startClock()
followPresence()
void loadSession()
keepSessionAlive()
startLive()

const root = document.getElementById('app')
if (root !== null) {
  root.replaceChildren()
  render(<App />, root)
}

/** Which page stands at the present address, and the two states before any page: not known yet who is here, and not signed in. */
function App() {
  const { value: current } = session
  if (current === null) {
    if (sessionError.value === null) return <Frame />
    return (
      <main class="lone">
        <ErrorBox error={sessionError.value} onRetry={() => void loadSession()} />
      </main>
    )
  }
  if (path.value === '/sign-in' || (!current.signed_in && !current.operator)) return <SignInPage />
  // Nothing of the operator's is asked for by anybody else. Whoever has the admin token signs in where they wanted to go.
  const isKeptBack = /^\/operator(\/|$)/.test(path.value) && !current.operator
  if (isKeptBack && current.may_become_operator) return <SignInPage />
  const { Page, title, parameters } = findPage(isKeptBack ? '' : path.value)
  document.title = `${title} · Atelier`
  return (
    <Shell>
      <Boundary key={path.value} mark={window.location.href} instead={(error) => <BrokenPage error={error} />}>
        <Page {...parameters} />
      </Boundary>
    </Shell>
  )
}

/** As the service has put it into the page: nothing is seen to change when the script takes over. */
function Frame() {
  return (
    <div class="shell" aria-busy="true">
      <div class="nav">
        <span class="brand">Atelier</span>
      </div>
    </div>
  )
}

function BrokenPage({ error }: { readonly error: unknown }) {
  return (
    <section class="page">
      <h1>This page cannot be shown</h1>
      <p role="alert">
        Something in it could not be drawn: <Words text={error instanceof Error ? error.message : String(error)} />
      </p>
      <button type="button" class="button" onClick={() => window.location.reload()}>
        Reload
      </button>
    </section>
  )
}
