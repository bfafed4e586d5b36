// The shop's page: sends actions, keeps the page current, and runs the demo.
'use strict'

const find = id => document.getElementById(id)
const say = text => { find('status').textContent = text }

// Fetches the page again, and takes over the parts that changed.
async function refresh () {
  const text = await (await fetch('/')).text()
  const fresh = new DOMParser().parseFromString(text, 'text/html')
  for (const id of ['state', 'alerts', 'log']) {
    const part = fresh.getElementById(id)
    if (part.innerHTML !== find(id).innerHTML) find(id).replaceChildren(...part.childNodes)
  }
}

async function send (button) {
  const { path, body } = button.dataset
  const headers = body ? { 'content-type': 'application/json' } : {}
  const response = await fetch(path, { method: 'POST', headers, body })
  say(`${button.textContent}: ${response.ok ? 'done' : `rejected (${response.status})`}`)
  await refresh()
}

const lost = () => say('The shop does not respond.')

for (const button of document.querySelectorAll('button[data-path]')) {
  button.addEventListener('click', () => send(button).catch(lost))
}

// Moves the cursor to the middle of a button; without motion where the user prefers that.
async function move (cursor, button) {
  button.scrollIntoView({ block: 'nearest' })
  const { left, top, width, height } = button.getBoundingClientRect()
  const to = `translate(${left + width / 2}px, ${top + height / 2}px)`
  const still = matchMedia('(prefers-reduced-motion: reduce)').matches
  const motion = { duration: still ? 0 : 700, easing: 'ease-in-out' }
  await cursor.animate([{ transform: cursor.style.transform || 'none' }, { transform: to }], motion).finished
  cursor.style.transform = to
  if (!still) await cursor.animate([{ scale: 1 }, { scale: 0.6 }, { scale: 1 }], { duration: 300 }).finished
}

// The sequence that oversells, and then a slow purchase.
async function demo () {
  const cursor = find('cursor')
  cursor.hidden = false
  for (const id of ['reset', 'drain', 'expedite', 'slow', 'expedite']) {
    await move(cursor, find(id))
    await send(find(id))
  }
  say('Demo done: a drained shop sold 5 pieces twice, and the last purchase was slow.')
}

find('demo').addEventListener('click', async () => {
  find('demo').disabled = true
  try {
    await demo()
  } catch {
    lost()
  } finally {
    find('demo').disabled = false
  }
})

setInterval(() => refresh().catch(lost), 2000)
