import { render } from 'preact'
import { App } from './app.tsx'
import { followAddress } from './routes.ts'
import { applyPreferences } from './state/preferences.ts'
import { keepSessionAlive, loadSession } from './state/session.ts'

applyPreferences()
followAddress()
void loadSession()
keepSessionAlive()

const root = document.getElementById('app')
if (root !== null) render(<App />, root)
