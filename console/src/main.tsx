import { render } from 'preact'
import { App } from './app.tsx'
import { followKeys } from './keys/keys.ts'
import { followAddress } from './routes.ts'
import { startClock } from './state/clock.ts'
import { startLive } from './state/live/live.ts'
import { followPresence } from './state/live/presence.ts'
import { applyPreferences } from './state/preferences.ts'
import { keepSessionAlive, loadSession } from './state/session.ts'

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
