# node-postgres: fetched once, run.
if [ ! -d node_modules/pg ]; then
    npm install --no-audit --no-fund --silent >npm.log 2>&1 || {
        echo "npm cannot fetch pg"
        exit 77
    }
fi
node check.js
