import { render } from 'preact'
import { SharePage } from './share-page.tsx'

const root = document.getElementById('app')
if (root !== null) {
  root.removeAttribute('aria-busy')
  render(<SharePage />, root)
}
